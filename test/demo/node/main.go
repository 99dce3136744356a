// Command node is what "make run CLUSTER=1" and "make run KEEP=1" start. It starts a Kubernetes API server and, where the machine can
// have one, a node with a simulated GPU (package test/cluster), installs gpuslice from its own manifests, and shows there what package
// demo shows without them. It ends with 1 when anything turns out otherwise than expected.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/demo"
	"github.com/gpuslice/gpuslice/test/install"
)

// options are the command's flags.
type options struct {
	demo.Options
	keep bool
}

func main() {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.BoolVar(&o.keep, "keep", false, "leave the cluster up")
	var err error
	o.Options, err = demo.Parse(flags, os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // a sample's warnings are shown below it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := demonstrate(ctx, o, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	os.Exit(code)
}

// demonstrate takes the tier with a node where it can, else the one with an API server alone, and reports which. With a node this
// program is started again inside of a box, and comes here a second time.
func demonstrate(ctx context.Context, o options, stdout, stderr io.Writer) (code int, err error) {
	if o.Pod != "" {
		return status(samplesOnly(ctx, o, "a pod of yours", stdout, stderr))
	}
	prepare := func(ctx context.Context, dir string) error {
		fmt.Fprintln(stderr, "--> tier: a real node")
		bin, err := cluster.Build(ctx, stderr, cluster.Helm())
		if err != nil {
			return err
		}
		if err := os.Symlink(bin["helm"], filepath.Join(dir, helmFile)); err != nil {
			return fmt.Errorf("place helm: %w", err)
		}
		fmt.Fprintln(stderr, "--> building webhook, guard, tenant and the simulated GPU")
		return install.Build(ctx, dir)
	}
	code, err = cluster.InBox(ctx, stderr, prepare, func() int {
		code, err := status(onNode(ctx, o, stdout, stderr))
		if err != nil {
			fmt.Fprintln(stderr, "demo:", err)
		}
		return code
	})
	switch inside := box.Dir() != ""; {
	case errors.Is(err, box.ErrUnsupported):
		return status(samplesOnly(ctx, o, err.Error(), stdout, stderr))
	case err != nil || code != 0 || inside || o.keep:
		return code, err
	}
	return status(samplesOnly(ctx, o, "sample pods", stdout, stderr))
}

// samplesOnly is the demonstration without a node.
func samplesOnly(ctx context.Context, o options, why string, stdout, stderr io.Writer) error {
	fmt.Fprintf(stderr, "--> tier: an API server without a node (%s)\n", why)
	if err := run(ctx, o, stdout, stderr); err != nil || o.keep {
		return err
	}
	demo.GoOn(stdout)
	return nil
}

// status is the exit status of a run that ended with err.
func status(err error) (int, error) {
	if err != nil {
		return 1, err
	}
	return 0, nil
}
