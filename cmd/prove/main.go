// Command prove finds out by which means a program is limited to its slice of a GPU: it goes past the slice by a little
// in each way that CUDA has, each time in processes of its own, and reports the limit that stopped them. It loads the
// driver's libraries at run time, and needs neither CUDA's toolkit nor Kubernetes.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == allocateCommand {
		os.Exit(allocate(os.Args[2], os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], process{out: os.Stdout, err: os.Stderr, lookup: os.LookupEnv, cgroup: "/sys/fs/cgroup"}))
}
