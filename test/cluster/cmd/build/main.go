// Command build compiles the programs of the test cluster into the cache, so that the first test does not.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/gpuslice/gpuslice/test/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

// run prints the path of each program on stdout; progress goes to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.SetOutput(stderr)
	node := flags.Bool("node", false, "also what a whole node needs: containerd, runc (takes a C compiler), NVIDIA's device plugin")
	certManager := flags.Bool("cert-manager", false, "also cert-manager's controllers and cainjector")
	prometheus := flags.Bool("prometheus", false, "also prometheus and promtool")
	flags.Usage = func() {
		fmt.Fprint(stderr, `usage: go run ./test/cluster/cmd/build [-node] [-cert-manager] [-prometheus]

Compiles what the test cluster consists of, where the cache lacks it, and prints the path of each program.
The first time this takes minutes and some 4 GiB in Go's build cache; later it takes no time.

  GPUSLICE_CACHE   where the programs are kept (default: gpuslice in the user's cache folder)
`)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return nil
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	targets := append(cluster.ControlPlane(), cluster.Helm())
	if *node {
		targets = append(targets, cluster.NodeParts()...)
	}
	if *certManager {
		targets = append(targets, cluster.CertManager()...)
	}
	if *prometheus {
		targets = append(targets, cluster.Prometheus())
	}
	bin, err := cluster.Build(ctx, stderr, targets...)
	if err != nil {
		return err
	}
	var paths []string
	for _, path := range bin {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		fmt.Fprintln(stdout, path)
	}
	return nil
}
