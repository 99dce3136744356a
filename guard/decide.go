package guard

import (
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// decide orders a second sample, or one termination, for the container that is
// furthest over its limit.
func decide(s State, readings []reading, l limits.Limits) (State, *Order, []Event) {
	u, found := nextOverLimit(s, readings, l)
	if !found {
		return s, nil, nil
	}
	o := Order{Kind: Confirm, Container: u.Container, Device: u.Device, UsedBytes: u.UsedBytes, LimitBytes: u.LimitBytes,
		SliceBytes: u.SliceBytes, Beyond: u.Beyond, OverFor: u.OverFor, DryRun: l.DryRun}
	if !u.Confirming { // one sample may show memory that is about to be freed
		u.Confirming = true
		s.Usages = put(s.Usages, u, byPlace)
		return s, &o, nil
	}
	o, reason := terminationOrder(s, o, u, readings, l)
	if reason == "" {
		s.InProgress = &o
		return s, &o, nil
	}
	var events []Event
	if u.Reported != reason { // once for each reason: it is tried in each sample
		events = append(events, u.notTerminated(reason))
	}
	u.Reported = reason
	s.Usages = put(s.Usages, u, byPlace)
	return s, nil, events
}

// nextOverLimit returns the usage to act on, and whether there is one and it is
// time.
func nextOverLimit(s State, readings []reading, l limits.Limits) (Usage, bool) {
	if !s.mayTerminate(l.Settle) {
		return Usage{}, false
	}
	due := slices.DeleteFunc(slices.Clone(s.Usages), func(u Usage) bool {
		return u.OverSince.IsZero() || u.OverFor < l.Grace || !s.listedSinceTermination(u.Device, readings)
	})
	if len(due) == 0 {
		return Usage{}, false
	}
	// One at a time: what a termination frees may bring others within their limits.
	return slices.MinFunc(due, byUrgency), true
}

// listedSinceTermination reports whether a device was listed, and is trusted, since
// the last termination.
func (s State) listedSinceTermination(device string, readings []reading) bool {
	trusted := slices.ContainsFunc(readings, func(r reading) bool { return r.ID == device && r.trusted })
	return trusted && s.device(device).ListedAt.After(s.OutcomeAt)
}

// terminationOrder completes an order to terminate a process of the container, or
// the container, or returns the reason for which it is not terminated.
func terminationOrder(s State, o Order, u Usage, readings []reading, l limits.Limits) (Order, string) {
	switch {
	case u.Container == UnnamedContainer: // it is not one container
		return processOrder(o, u, readings)
	case s.terminations(u.Container, s.SampledAt.Add(-l.TerminationsWindow)) < l.MaxTerminations:
		return processOrder(o, u, readings)
	case l.Escalation == limits.EscalationObserve:
		return o, fmt.Sprintf("terminated %s within %s, and the policy allows no more",
			count(l.MaxTerminations, "time", "times"), FormatDuration(l.TerminationsWindow))
	}
	return containerOrder(o, u, readings), ""
}

func processOrder(o Order, u Usage, readings []reading) (Order, string) {
	able := slices.DeleteFunc(slices.Clone(u.Processes), func(p Process) bool { return !p.terminable() })
	if len(able) == 0 {
		return o, "it has no process that the guard may terminate"
	}
	o.Kind, o.Process = TerminateProcess, slices.MinFunc(able, byCost)
	o.MPS = o.Process.MPS
	o.Alone = alone(readings, func(p Process) bool { return p.same(o.Process) })
	return o, ""
}

func containerOrder(o Order, u Usage, readings []reading) Order {
	o.Kind = TerminateContainer
	o.MPS = slices.ContainsFunc(u.Processes, func(p Process) bool { return p.MPS })
	o.Alone = alone(readings, func(p Process) bool { return p.Container == u.Container })
	return o
}

// alone reports whether every process that the devices list is one that the
// order names.
func alone(readings []reading, named func(Process) bool) bool {
	return !slices.ContainsFunc(readings, func(r reading) bool {
		return !r.trusted || slices.ContainsFunc(r.Processes, func(p Process) bool { return !named(p) })
	})
}

// withheld returns why a sample that was taken after the target was acquired does
// not call for the order any more, or an empty text when it does: the very process
// listed, the container over its limit, or idle, on a device that can be relied on.
func withheld(s State, in Sample, o Order, l limits.Limits) string {
	i := slices.IndexFunc(in.Devices, func(d Device) bool { return d.ID == o.Device && d.Listed.After(s.SampledAt) })
	if in.Fault != "" || i < 0 { // without evidence from after the handle was opened, nobody is signaled
		return "its device could not be read when it was sampled again" + because(in.Fault)
	}
	d := in.Devices[i]
	if fault := listFault(s, d); fault != "" {
		return "its device could not be relied on when it was sampled again" + because(fault)
	}
	if o.forIdleness() {
		return withheldFromIdle(in, d, o)
	}
	c, limited := limitOf(l, o.Container, d, s.Usages)
	listed := o.Kind == TerminateContainer || slices.ContainsFunc(d.Processes, func(p Process) bool {
		return p.Container == c.Name && p.same(o.Process) && p.Known
	})
	switch {
	case !limited || !listed:
		return "the device no longer listed it when it was sampled again"
	case !over(s, in, d, o, c, l):
		return "it was no longer over its limit when it was sampled again"
	}
	return ""
}

// over reports whether the container that an order names uses more of the device
// than it may.
func over(s State, in Sample, d Device, o Order, c limits.Container, l limits.Limits) bool {
	if o.Beyond {
		readings, _, _ := evaluateReadings(s, in)
		return beyondGPUs(c, d.ID, held(c.Name, nil, readings))
	}
	return usedBytes(d, c.Name, doubleCountedOn(s.Usages, c.Name, d.ID)) > effectiveLimit(l, c, d)
}

func because(fault string) string {
	if fault == "" {
		return ""
	}
	return ": " + fault
}
