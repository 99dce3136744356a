package main

import (
	"context"
	"log/slog"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/proc"
)

// voice tells of what the guard does: in the log, by the probes, in metrics, and
// in the tenant's own termination message.
type voice struct {
	log   *slog.Logger
	board *board
	usage *usage
	table *proc.Table
}

// Say implements guard.Voice.
func (v *voice) Say(a guard.Action) {
	v.log.Log(context.Background(), levelOf(a), string(a.Kind), facts(a)...)
	v.usage.count(a)
	if a.Telling() {
		v.board.post(a.Sentence())
	}
}

// Saw implements guard.Voice.
func (v *voice) Saw(sample guard.Sample, s guard.State) {
	v.board.saw(sample.Taken, s.Blind())
	v.usage.saw(sample, s)
}

// resumed tells of a pod that nobody guarded for a while. The kubelet starts no
// container with a slice before the guard: one that runs before the guard's first
// look has outlived another guard.
func (v *voice) resumed(l limits.Limits) {
	for _, c := range l.Containers {
		if !v.table.Runs(c.Name) {
			continue
		}
		says := "the guard of this pod had ended and was started again: nothing held " + c.Name + " to its slice in between"
		v.log.Warn("resumed", "says", says, "container", c.Name)
		v.board.post(says)
	}
}

// before leaves the reason in the tenant's termination message, where the guard
// may write there. Most tenants are of another user, so that it may not; the
// Event says the same.
func (v *voice) before(o guard.Order, pid int) {
	if err := v.table.Tell(pid, o.Sentence()); err != nil {
		v.log.Debug("termination message not written", "pid", pid, "error", err)
	}
}

func levelOf(a guard.Action) slog.Level {
	switch {
	case a.Kind == guard.Confirm:
		return slog.LevelDebug
	case a.Telling() && a.Kind != guard.Sighted:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// facts are the key-value pairs of an action, those that it has.
func facts(a guard.Action) []any {
	pairs := []any{"says", a.Sentence()}
	add := func(key string, value any, has bool) {
		if has {
			pairs = append(pairs, key, value)
		}
	}
	process := a.Process
	if a.Kind == guard.Report {
		process = a.Order.Process
	}
	add("container", a.Container, a.Container != "")
	add("device", a.Device, a.Device != "")
	add("pid", process.PID, process.PID != 0)
	add("start", process.Start, process.Start != 0)
	add("command", process.Command, process.Command != "")
	add("held", a.HeldBytes, a.HeldBytes != 0)
	add("wall", a.WallBytes, a.WallBytes != 0)
	add("slice", a.SliceBytes, a.SliceBytes != 0)
	add("reason", a.Reason, a.Reason != "")
	add("result", a.Outcome.Result, a.Outcome.Result != "")
	add("signal", a.Outcome.Signal, a.Outcome.Signal != "")
	add("why", a.Outcome.Reason, a.Outcome.Reason != "")
	add("over", guard.Span(a.Order.Over), a.Order.Over > 0)
	add("dryRun", true, a.DryRun)
	return pairs
}
