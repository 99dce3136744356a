package guard

import (
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// Step returns the state after a sample, the next order and the events to report,
// in order. An order to terminate names a process that the sample lists, or the
// container of such processes. That container may have no slice: its limit is the
// rest of the pod's slices. A sample that is not newer than the last is no evidence;
// only its outcome is applied.
//
// It is a chain: each function reads the state as the ones before left it, and
// returns its changes.
func Step(s State, in Sample, l limits.Limits) (State, *Order, []Event) {
	s, events := applyOutcome(s, in.Outcome)
	if !in.Taken.After(s.SampledAt) {
		return s, nil, events
	}
	s, late := evaluateLateness(s, in, l)
	readings, devices, turned := evaluateReadings(s, in)
	s.UnnamedSince = unnamedSince(s.UnnamedSince, in.Taken, readings)
	unmanaged, used := evaluateUnmanaged(s, in.Taken, readings, l)
	orphaned, unheld := evaluateOrphans(s, readings)
	usages, warned := evaluateUsage(s, in, readings, l)
	pending, lingering := expireReleased(s.PendingRelease, readings, in.Taken)

	s.SampledAt, s.Devices, s.Unmanaged, s.Usages, s.PendingRelease = in.Taken, devices, unmanaged, usages, pending
	s.Orphaned = orphaned
	s.Terminations = recentTerminations(s.Terminations, in.Taken, l.TerminationsWindow)
	s, order, skipped := decide(s, readings, l)
	if order == nil {
		s, order = decideIdle(s, in, readings, l)
	}
	return s, order, slices.Concat(events, late, turned, used, unheld, warned, lingering, skipped)
}

// applyOutcome takes in the outcome of the termination in progress.
func applyOutcome(s State, out *Outcome) (State, []Event) {
	if out == nil || s.InProgress == nil {
		return s, nil
	}
	o := out.Order
	s.InProgress, s.OutcomeAt, s.Settling = nil, out.At, out.Result != Gone // after Gone the driver has nothing to release
	if out.Result == Terminated && o.Kind == TerminateProcess {
		s.PendingRelease = append(slices.Clone(s.PendingRelease), PendingRelease{o.Device, o.Process, out.At.Add(releasePeriod)})
	}
	reported := []Event{{Kind: TerminationResult, Container: o.Container, Device: o.Device, SliceBytes: o.SliceBytes, Outcome: out}}
	if o.forIdleness() { // no usage was over its limit
		return s, reported
	}
	u, _ := s.usage(o.Container, o.Device)
	u.Confirming = false
	if out.Result == Terminated { // who is left has a grace period of its own
		u.OverFor = 0
	}
	repeated := false
	if out.Result.counts() {
		s.Terminations = append(slices.Clone(s.Terminations), Termination{o.Container, out.At})
	} else {
		repeated = out.Reason != "" && u.Reported == out.Reason
		u.Reported = out.Reason
	}
	s.Usages = put(s.Usages, u, byPlace)
	if repeated {
		return s, nil
	}
	return s, reported
}

// expireReleased drops terminated processes whose memory was released, and
// reports one whose memory was not.
func expireReleased(pending []PendingRelease, readings []reading, now time.Time) ([]PendingRelease, []Event) {
	var kept []PendingRelease
	var events []Event
	for _, p := range pending {
		i := slices.IndexFunc(readings, func(r reading) bool { return r.ID == p.Device && r.trusted })
		listed := i >= 0 && (contains(readings[i].Processes, p.Process.PID) || contains(readings[i].Everyone, p.Process.PID))
		switch {
		case i < 0, listed && now.Before(p.Deadline): // the driver takes a while, and an unread device shows nothing
			kept = append(kept, p)
		case listed:
			events = append(events, Event{Kind: MemoryNotReleased, Container: p.Process.Container, Device: p.Device, Process: p.Process})
		}
	}
	return kept, events
}

// recentTerminations drops terminations that no longer count.
func recentTerminations(all []Termination, now time.Time, window time.Duration) []Termination {
	return slices.DeleteFunc(slices.Clone(all), func(t Termination) bool { return now.Sub(t.At) > window })
}
