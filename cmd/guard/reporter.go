package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/proc"
	"github.com/gpuslice/gpuslice/guard/ticks"
)

// reporter reports the guard's work: in the log, through the probes, in metrics,
// and in the tenant's own termination message.
type reporter struct {
	log      *slog.Logger
	probes   *publisher
	recorder *recorder
	table    *proc.Table
}

// Report implements guard.Reporter.
func (r *reporter) Report(e guard.Event) {
	r.log.Log(context.Background(), e.Level(), string(e.Kind), eventAttrs(e)...)
	r.recorder.count(e)
	switch {
	case e.Kind == guard.TerminationResult && e.Outcome.Result == guard.Terminated:
		r.probes.enqueueTermination(e.Message())
	case e.ForOwner():
		r.probes.enqueue(e.Message())
	}
}

// Ordered implements guard.Reporter.
func (r *reporter) Ordered(o guard.Order) {
	r.log.Log(context.Background(), o.Level(), string(o.Kind), orderAttrs(o)...)
}

// Observed implements guard.Reporter.
func (r *reporter) Observed(sample guard.Sample, s guard.State) {
	r.probes.observe(s)
	r.recorder.record(sample, s)
}

// reportRestart reports a pod that was not guarded for a while. The kubelet
// starts no container with a slice before the guard: one that runs before the
// guard's first sample has outlived another guard.
func (r *reporter) reportRestart(l limits.Limits) {
	for _, c := range l.Containers {
		if !r.table.Runs(c.Name) {
			continue
		}
		message := "the guard of this pod was restarted: the slice of " + c.Name + " was not enforced in between"
		r.log.Warn("restarted", "message", message, "container", c.Name)
		r.probes.enqueue(message)
		r.probes.deliveries.notBefore = proc.SinceBoot() + deliveryPause
	}
}

// intruderPeriod is how often the guard looks for other processes in its
// container.
const intruderPeriod = 2 * time.Second

// watchIntruders terminates and reports foreign processes in the guard's container, until
// ctx is done.
func (r *reporter) watchIntruders(ctx context.Context, intruders *proc.Intruders) {
	for range ticks.Every(ctx, intruderPeriod) {
		for _, p := range intruders.Terminate(time.Now()) {
			message := fmt.Sprintf("gpuslice terminated %s (pid %d) in %s: nothing but the guard may run there",
				p.Command, p.PID, limits.GuardContainer)
			r.log.Warn("intruder", "message", message, "container", limits.GuardContainer, "pid", p.PID, "start", p.Start, "command", p.Command)
			r.probes.enqueueTermination(message)
		}
	}
}

// attrs are the key-value pairs of a log line that have a value.
type attrs []any

func (a *attrs) add(key string, value any, has bool) {
	if has {
		*a = append(*a, key, value)
	}
}

func (a *attrs) addPlace(container, device string, p guard.Process) {
	a.add("container", container, container != "")
	a.add("device", device, device != "")
	a.add("pid", p.PID, p.PID != 0)
	a.add("start", p.Start, p.Start != 0)
	a.add("command", p.Command, p.Command != "")
}

func eventAttrs(e guard.Event) attrs {
	a := attrs{"message", e.Message()}
	process, overFor, reason := e.Process, e.OverFor, e.Reason
	if out := e.Outcome; out != nil {
		process, overFor, reason = out.Order.Process, out.Order.OverFor, out.Reason
	}
	a.addPlace(e.Container, e.Device, process)
	a.add("usedBytes", e.UsedBytes, e.UsedBytes != 0)
	a.add("limitBytes", e.LimitBytes, e.LimitBytes != 0)
	a.add("sliceBytes", e.SliceBytes, e.SliceBytes != 0)
	if out := e.Outcome; out != nil {
		a.add("result", out.Result, true)
		a.add("signal", out.Signal, out.Signal != "")
	}
	a.add("reason", reason, reason != "")
	a.add("duration", guard.FormatDuration(overFor), overFor > 0)
	return a
}

func orderAttrs(o guard.Order) attrs {
	a := attrs{"message", o.Message()}
	a.addPlace(o.Container, o.Device, o.Process)
	a.add("usedBytes", o.UsedBytes, true)
	a.add("limitBytes", o.LimitBytes, true)
	a.add("sliceBytes", o.SliceBytes, true)
	a.add("duration", guard.FormatDuration(o.OverFor), o.OverFor > 0)
	return a
}
