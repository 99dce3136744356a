package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: demo [-pod FILE] [-keep]

Starts a real Kubernetes API server, installs gpuslice on it, and shows what becomes of sample pods.

  make run                    the sample pods
  make run POD=my.yaml        your pod instead, in the namespace it names (research without one)
  make run KEEP=1             leaves the API server up, with a kubectl to go on with

Exit codes: 0 every pod came out as expected, 1 one did not, or something failed, 2 wrong usage.
`

// options are the command's flags.
type options struct {
	pod  string
	keep bool
}

var errUnexpected = errors.New("not everything came out as expected")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("demo", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprint(stderr, usage) }
	f.StringVar(&o.pod, "pod", "", "a file with a pod of yours")
	f.BoolVar(&o.keep, "keep", false, "leave the API server up")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		fmt.Fprintf(stderr, "unknown argument %q\n%s", f.Arg(0), usage)
		return o, errors.New("unknown argument")
	}
	return o, nil
}
