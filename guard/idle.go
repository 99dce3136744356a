package guard

import (
	"slices"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// decideIdle orders the termination of one process of an idle container, each
// process once: what cannot be terminated is left until something runs again.
func decideIdle(s State, in Sample, readings []reading, l limits.Limits) (State, *Order) {
	s.IdleOrdered = slices.DeleteFunc(slices.Clone(s.IdleOrdered), func(p Process) bool { return !isIdle(p.Container, in) })
	if !s.mayTerminate(l.Settle) {
		return s, nil
	}
	for _, idle := range in.Idle {
		for _, u := range s.Usages {
			if u.Container != idle.Container || !s.settledOn(u.Device, readings) {
				continue
			}
			for _, p := range u.Processes {
				if p.MPS || !p.terminable() || slices.ContainsFunc(s.IdleOrdered, p.same) {
					continue
				}
				s.InProgress = &Order{Kind: TerminateProcess, Container: u.Container, Device: u.Device, Process: p, UsedBytes: u.UsedBytes,
					LimitBytes: u.LimitBytes, SliceBytes: u.SliceBytes, DryRun: l.DryRun, Idle: idle}
				s.IdleOrdered = append(s.IdleOrdered, p)
				return s, s.InProgress
			}
		}
	}
	return s, nil
}

func isIdle(container string, in Sample) bool {
	return slices.ContainsFunc(in.Idle, func(i Idle) bool { return i.Container == container })
}

// stillIdle reports whether a device lists the very process of an order for a
// container that has been idle ever since.
func stillIdle(in Sample, d Device, o Order) bool {
	return slices.ContainsFunc(in.Idle, o.Idle.same) && slices.ContainsFunc(d.Processes, func(p Process) bool {
		return p.Container == o.Container && p.same(o.Process) && !p.MPS && p.terminable()
	})
}
