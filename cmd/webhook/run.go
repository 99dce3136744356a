package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
)

// gcPercent is GOGC if the environment has GOMEMLIMIT and no GOGC. A replica keeps little, 10 MB on a small cluster,
// and each review leaves a third of a megabyte: by Go's own 100 the collector takes a tenth of the CPU. Without a
// memory limit, 400 could take five times the live heap.
const gcPercent = 400

func init() {
	// An odd object in a handler of an informer must not end the process that serves reviews: the handler leaves it out.
	utilruntime.ReallyCrash = false
	if os.Getenv("GOGC") == "" && debug.SetMemoryLimit(-1) < math.MaxInt64 {
		debug.SetGCPercent(gcPercent)
	}
}

// run serves until ctx ends, and drains.
func run(ctx context.Context, o Options, stderr io.Writer) error {
	return runCounted(ctx, o, metrics.New(version), stderr)
}

// runCounted is run with metrics that others read too.
func runCounted(ctx context.Context, o Options, m *metrics.Metrics, stderr io.Writer) error {
	log, err := newLogger(o, stderr)
	if err != nil {
		return err
	}
	s, err := newSetup(o, m, log)
	if err != nil {
		return err
	}
	defer s.ledger.Close()
	reviews, probes, err := listen(o)
	if err != nil {
		return err
	}
	log.Info("starting", "version", version, "namespace", o.Namespace, "certs", o.Certs)
	log.Info("listening", "reviews", reviews.Addr().String(), "probes", probes.Addr().String())
	server := s.server()
	return serveBeside(ctx, s.parts(), func(ctx context.Context) error { return server.Serve(ctx, reviews, probes) })
}

// listen opens both ports.
func listen(o Options) (reviews, probes net.Listener, err error) {
	if reviews, err = net.Listen("tcp", o.Listen); err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	if probes, err = net.Listen("tcp", o.MetricsListen); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("listen: %w", err), reviews.Close())
	}
	return reviews, probes, nil
}

// part runs until its context ends.
type part func(context.Context) error

// serveBeside runs the parts beside serve, and ends them after it: reviews are decided while the server drains. A part that
// fails ends serve.
func serveBeside(ctx context.Context, parts map[string]part, serve part) error {
	beside, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, failed := errgroup.WithContext(beside)
	for what, run := range parts {
		group.Go(func() error {
			// With the context of the group a part that fails would end the others before the server has drained.
			if err := run(beside); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		})
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	context.AfterFunc(failed, stop)
	err := serve(serving)
	stopped := ctx.Err() != nil
	end()
	if broken := group.Wait(); err == nil && !stopped {
		return broken
	}
	return err
}
