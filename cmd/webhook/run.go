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

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

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

// run serves until ctx is done, and drains.
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
	return s.run(ctx, reviews, probes)
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

// run serves with all parts beside, under one manager.
func (s *Setup) run(ctx context.Context, reviews, probes net.Listener) error {
	config, err := s.findServer(clientRate)
	if err != nil {
		return err
	}
	m, err := manager.New(config, manager.Options{
		Logger: s.log.WithName("manager"), GracefulShutdownTimeout: &s.options.Shutdown,
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", // the server's second port has both
	})
	if err != nil {
		return fmt.Errorf("prepare the manager: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for what, run := range s.parts() {
		if err := m.Add(part{what, run, stop}); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := s.server().Run(ctx, m, reviews, probes); err != nil {
		return err
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// part is a Runnable of every replica. One that fails stops the replica in order: its error would end the manager at once, and
// with it the other parts before the server has drained.
type part struct {
	what string
	run  func(context.Context) error
	stop context.CancelCauseFunc
}

// Start implements manager.Runnable.
func (p part) Start(ctx context.Context) error {
	if err := p.run(ctx); err != nil && ctx.Err() == nil {
		p.stop(fmt.Errorf("%s: %w", p.what, err))
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: without it, a part would count as the leader's.
func (part) NeedLeaderElection() bool { return false }
