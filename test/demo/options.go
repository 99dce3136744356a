package demo

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

const usage = `usage: demo [-pod FILE] [-v]

Shows two pods that share a simulated GPU, one of which goes past its slice, and what becomes of sample pods.

  make run                    the two pods, and a line for each sample; no Kubernetes is needed
  make run V=1                a diff of each sample, too
  make run POD=my.yaml        your pods and workloads instead, in the namespaces they name (research without one)
  make run CLUSTER=1          the same on a real API server, and as root on a real node (kubelet, containerd, NVIDIA's device
                              plugin); the first time this compiles Kubernetes
  make run KEEP=1             the node stays up after the two pods (without one, the API server), with kubectl, helm and gpuslice

Exit codes: 0 everything came out as expected, 1 something did not, or failed, 2 wrong usage.
`

// Options are the flags of all demonstrations.
type Options struct {
	Pod     string // a file with pods and workloads of the user's own; "": the samples
	Verbose bool
}

// ErrUnexpected is wrapped by the error about something that came out otherwise than expected.
var ErrUnexpected = errors.New("not everything came out as expected")

// Unexpected is the error about so many samples; nil where there is none.
func Unexpected(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d pods", ErrUnexpected, n)
}

// Parse adds the flags to f, and reads all that f has.
func Parse(f *flag.FlagSet, args []string, stderr io.Writer) (o Options, err error) {
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprint(stderr, usage) }
	f.StringVar(&o.Pod, "pod", "", "a file with pods and workloads of yours")
	f.BoolVar(&o.Verbose, "v", false, "print diffs")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		fmt.Fprintf(stderr, "unknown argument %q\n%s", f.Arg(0), usage)
		return o, errors.New("unknown argument")
	}
	return o, nil
}
