package main

import (
	"context"
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

// run guards the pod until ctx is done.
func run(ctx context.Context, o options, p process) int {
	l, err := limits.FromEnv(p.lookup)
	if err != nil {
		return giveUp(o, p, fmt.Errorf("read the guard's limits: %w", err))
	}
	l.DryRun = l.DryRun || o.dryRun
	table, err := proc.Open(o.proc)
	if err != nil {
		return giveUp(o, p, err)
	}
	probes, err := listen(o.proc)
	if err != nil {
		return giveUp(o, p, err)
	}
	log := slog.New(slog.NewJSONHandler(p.out, &slog.HandlerOptions{Level: o.level}))
	driver := gpu.New(gpu.Options{Library: o.library, MPS: l.MPSPipeDirectory != ""})
	v := &voice{log: log, board: &board{}, usage: newUsage(l, driver.Utilizations), table: table}
	begin(log, l, table)
	v.resumed(l)

	var servers sync.WaitGroup
	servers.Go(func() { serve(ctx, probes, table, v.board) })
	if l.MetricsPort > 0 {
		servers.Go(func() {
			if err := serveMetrics(ctx, l.MetricsPort, v.usage); err != nil {
				log.Error("metrics are not served", "port", l.MetricsPort, "error", err)
			}
		})
	}
	g := guard.Guard{Limits: l, Voice: v, Hands: hands(o, l, v),
		Eyes: eyes{&guard.PodEyes{Reader: driver, Namer: table}, v.usage, table.Shared()}}
	g.Run(ctx)
	servers.Wait()
	if left := v.board.left(); left != "" {
		tellKubelet(o, p, left)
	}
	log.Info("stopped")
	return exitOK
}

// begin says what the guard starts with, and what it lacks.
func begin(log *slog.Logger, l limits.Limits, table *proc.Table) {
	for _, c := range l.Containers {
		log.Info("guarding", "container", c.Name, "slice", c.SliceBytes, "limit", c.LimitBytes, "gpus", c.GPUs)
	}
	log.Info("started", "version", version(), "act", l.Act, "grace", l.Grace.String(), "dryRun", l.DryRun)
}

// hands returns what ends processes: by signals, and before them through the MPS
// daemon where the pod is a client of one.
func hands(o options, l limits.Limits, v *voice) guard.Hands {
	signals := &proc.Hands{Table: v.table, TermGrace: l.TermGrace, Before: v.before}
	namespace, err := mps.Namespace(o.proc)
	if err != nil {
		v.log.Warn("MPS clients cannot be told apart", "error", err)
	}
	return &mps.Hands{Next: signals, Namespace: namespace, Ending: l.MPSEnding,
		Daemon: mps.Control{Program: l.MPSControl, PipeDirectory: l.MPSPipeDirectory}}
}

// eyes measure the looks. Where the pod does not share its PID namespace they
// see no tenant, which must not pass for a pod that holds nothing.
type eyes struct {
	guard.Eyes
	usage  *usage
	shared bool
}

// Look implements guard.Eyes.
func (e eyes) Look(ctx context.Context, maxAge time.Duration) guard.Sample {
	began := time.Now()
	sample := e.Eyes.Look(ctx, maxAge)
	e.usage.took(time.Since(began))
	if !e.shared && sample.Fault == "" {
		sample.Fault = "the pod does not share its PID namespace, so that the guard sees none of its processes"
	}
	return sample
}
