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
	"github.com/gpuslice/gpuslice/test/install"
)

const usage = `usage: demo [-pod FILE] [-v] [-cluster] [-keep]

Shows two pods that share a simulated GPU, one of which goes past its slice, and what becomes of sample pods. gpuslice's own
webhook and guard run as processes of this machine; no Kubernetes is needed.

  make run                    the two pods, and a line for each sample
  make run V=1                a diff of each sample, too
  make run POD=my.yaml        your pods and workloads instead, in the namespaces they name (research without one)
  make run CLUSTER=1          the same on a real API server, and as root on a real node (kubelet, containerd, NVIDIA's device
                              plugin); the first time this compiles Kubernetes
  make run KEEP=1             the node stays up after the two pods (without one, the API server), with kubectl, helm and gpuslice

Exit codes: 0 everything came out as expected, 1 something did not, or failed, 2 wrong usage.
`

// options are the command's flags.
type options struct {
	pod                    string
	keep, cluster, verbose bool
}

var errUnexpected = errors.New("not everything came out as expected")

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
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

// demonstrate runs without Kubernetes unless an option requires it. On a cluster it takes the tier with a node where it
// can, else the one with an API server alone, and reports which. With a
// node this program is started again inside of a box, and comes here a second time.
func demonstrate(ctx context.Context, o options, stdout, stderr io.Writer) (code int, err error) {
	if !o.cluster && !o.keep {
		return status(quick(ctx, o, stdout, stderr))
	}
	if o.pod != "" {
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
	goOn(stdout)
	return nil
}

// status is the exit status of a run that ended with err.
func status(err error) (int, error) {
	if err != nil {
		return 1, err
	}
	return 0, nil
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("demo", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprint(stderr, usage) }
	f.StringVar(&o.pod, "pod", "", "a file with pods and workloads of yours")
	f.BoolVar(&o.cluster, "cluster", false, "on a real API server and node")
	f.BoolVar(&o.verbose, "v", false, "print diffs")
	f.BoolVar(&o.keep, "keep", false, "leave the cluster up")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		fmt.Fprintf(stderr, "unknown argument %q\n%s", f.Arg(0), usage)
		return o, errors.New("unknown argument")
	}
	return o, nil
}
