// Command prove finds out by which means a program is limited to its slice of a GPU: it goes past the slice by a little
// in each way that CUDA has, each time in processes of its own, and reports the limit that stopped them. It loads the
// driver's libraries at run time, and needs neither CUDA's toolkit nor Kubernetes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/gpuslice/gpuslice/cmd/prove/oncard"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == allocateCommand {
		os.Exit(allocate(os.Args[2], os.Stdin, os.Stdout))
	}
	if len(os.Args) == 3 && os.Args[1] == oncard.HoldCommand {
		os.Exit(oncard.Hold(os.Args[2], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == oncard.NestCommand {
		fmt.Fprintln(os.Stderr, "gpuslice-prove:", oncard.Nest(os.Args[2:]))
		os.Exit(exitUnknown)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == oncard.Name {
		os.Exit(oncard.Command(ctx, os.Args[2:], os.Stdout, os.Stderr))
	}
	os.Exit(command(ctx, os.Args[1:], process{out: os.Stdout, err: os.Stderr, lookup: os.LookupEnv, cgroup: "/sys/fs/cgroup"}))
}
