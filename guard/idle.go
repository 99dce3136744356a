package guard

import (
	"slices"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// decideIdle orders the termination of one process of an idle container, each
// process once: one that cannot be terminated is left until something runs again.
func decideIdle(s State, in Sample, readings []reading, l limits.Limits) (State, *Order) {
	s.IdleOrdered = slices.DeleteFunc(slices.Clone(s.IdleOrdered), func(p Process) bool { return !isIdle(p.Container, in) })
	if !s.mayTerminate(l.Settle) {
		return s, nil
	}
	for _, idle := range in.Idle {
		for _, u := range s.Usages {
			// Its processes may be from before the last termination.
			if u.Container != idle.Container || !s.listedSinceTermination(u.Device, readings) {
				continue
			}
			for _, p := range u.Processes {
				// A signal to a client of MPS may end its server's other clients.
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

// withheldFromIdle returns why a sample of a device does not call any more for an
// order about an idle container, or an empty text when it does.
func withheldFromIdle(in Sample, d Device, o Order) string {
	listed := slices.ContainsFunc(d.Processes, func(p Process) bool {
		return p.Container == o.Container && p.same(o.Process) && !p.MPS && p.terminable()
	})
	switch {
	case !listed:
		return "the device no longer listed it when it was sampled again"
	case !slices.ContainsFunc(in.Idle, o.Idle.same):
		return "its container was no longer idle when it was sampled again"
	}
	return ""
}
