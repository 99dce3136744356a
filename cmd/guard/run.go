package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/mps"
	"github.com/gpuslice/gpuslice/guard/proc"
)

// terminationMargin is the time of a termination besides the waits for the process:
// the MPS daemon's answers, and a busy node.
const terminationMargin = 15 * time.Second

// run guards the pod until ctx is done.
func run(ctx context.Context, o options, p process) int {
	l, err := limits.FromEnv(p.lookup)
	if err != nil {
		return failUsage(o, p, fmt.Errorf("read the guard's limits: %w", err))
	}
	l.DryRun = l.DryRun || o.dryRun
	table, err := proc.Open(o.procDir)
	if err != nil {
		return failUsage(o, p, err)
	}
	log := slog.New(slog.NewJSONHandler(p.out, &slog.HandlerOptions{Level: o.level}))
	driver := gpu.New(gpu.Options{Library: o.nvmlLibrary, MPS: l.MPSPipeDirectory != "", Now: table.Now})
	r := &reporter{log: log, probes: newPublisher(log, o, l), recorder: newRecorder(l, driver.Utilizations), table: table}
	logStart(log, l)
	if l.DryRun {
		r.log = log.With("dryRun", true)
	}
	r.reportRestart(l)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var servers sync.WaitGroup
	if l.MetricsPort > 0 {
		servers.Go(func() {
			if err := serveMetrics(ctx, l.MetricsPort, r.recorder); err != nil {
				log.Error("metrics are not served", "port", l.MetricsPort, "error", err)
			}
		})
	}
	servers.Go(func() { r.watchIntruders(ctx, &proc.Intruders{Table: table, DryRun: l.DryRun}) })
	g := guard.Guard{Limits: l, Reporter: r, Terminator: newTerminator(o, l, r),
		Sampler: timedSampler{&guard.PodSampler{Reader: driver, Namer: table}, r.recorder, table.SharesPIDs(), func() {
			if driver.Ended() != nil || r.probes.isOverdue() {
				stop()
			}
		}}}
	g.Run(ctx)
	stop()
	servers.Wait()
	ended := driver.Ended()
	if ended != nil {
		r.probes.enqueue(ended.Error())
	}
	writeTerminationMessage(o, p, r.probes.unreported())
	log.Info("stopped", "driverUpdated", errors.Is(ended, gpu.ErrUpdated), "cutOff", errors.Is(ended, gpu.ErrCutOff), "messagesOverdue", r.probes.isOverdue())
	if ended != nil {
		return exitFailed
	}
	return exitOK
}

// newPublisher returns the publisher that answers the probes. A guard without it
// goes on: the kubelet starts it again, and it guards in between.
func newPublisher(log *slog.Logger, o options, l limits.Limits) *publisher {
	file, err := openStatusFile(o.terminationMessagePath)
	if err != nil {
		log.Error("probes get no answer", "error", err)
	}
	return &publisher{file: file, longest: l.TermGrace + proc.ExitTimeout + terminationMargin, log: log, deliveries: deliveries{path: o.observationPath}}
}

// logStart logs the guard's settings.
func logStart(log *slog.Logger, l limits.Limits) {
	for _, c := range l.Containers {
		log.Info("guarding", "container", c.Name, "sliceBytes", c.SliceBytes, "limitBytes", c.LimitBytes, "gpus", c.GPUs)
	}
	log.Info("started", "version", version, "act", l.Act, "grace", l.Grace.String(), "dryRun", l.DryRun)
}

// newTerminator returns the terminator of processes: by signals, and before them
// through the MPS daemon if the pod is a client of one.
func newTerminator(o options, l limits.Limits, r *reporter) guard.Terminator {
	signals := &proc.Terminator{Processes: r.table, TermGrace: l.TermGrace, Message: guard.Order.TenantMessage}
	namespace, err := mps.Namespace(o.procDir)
	if err != nil {
		r.log.Warn("MPS clients cannot be identified", "error", err)
	}
	return &mps.Terminator{Next: signals, Namespace: namespace, Nested: r.table.Nested, Fallback: l.MPSTermination,
		Daemon: mps.Control{Program: l.MPSControl, PipeDirectory: l.MPSPipeDirectory}}
}

// timedSampler times the samples of another sampler. Where the pod does not share
// its PID namespace that one sees no tenant, which must not pass for a pod that
// uses nothing.
type timedSampler struct {
	guard.Sampler
	recorder   *recorder
	sharesPIDs bool   // the pod shares its PID namespace
	after      func() // is called after each sample
}

// Sample implements guard.Sampler.
func (s timedSampler) Sample(ctx context.Context, maxAge time.Duration) guard.Sample {
	began := time.Now()
	sample := s.Sampler.Sample(ctx, maxAge)
	s.recorder.observeDuration(time.Since(began))
	s.after()
	if !s.sharesPIDs && sample.Fault == "" {
		sample.Fault = "the pod does not share its PID namespace, so that the guard sees none of its processes"
	}
	return sample
}
