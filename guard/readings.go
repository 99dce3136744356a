package guard

import (
	"fmt"
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// reading is one device of a sample, with how far it can be relied on.
type reading struct {
	Device
	taken         time.Time
	before, after DeviceStatus
	evidence      bool // it failed, or its list is newer than the last
	trusted       bool // its list is new, and every process of it is known
}

// sinceLast returns the time between the last list and this one.
func (r reading) sinceLast() time.Duration { return r.Listed.Sub(r.before.ListedAt) }

// evaluateReadings returns how far each device of the sample can be relied on, the
// status of every device after it, and changes of status.
func evaluateReadings(s State, in Sample) ([]reading, []DeviceStatus, []Event) {
	before := s.device("")
	after := before.count(in.Fault)
	statuses, events := dropVanished(s.Devices, in)
	statuses, events = put(statuses, after, byDevice), append(events, turned(before, after)...)
	var readings []reading
	for _, d := range in.Devices {
		r := evaluateReading(s, d)
		r.taken, r.trusted = in.Taken, r.trusted && in.Fault == ""
		readings = append(readings, r)
		statuses = put(statuses, r.after, byDevice)
		events = append(events, turned(r.before, r.after)...)
	}
	return readings, statuses, events
}

// dropVanished drops the status of each device that is no longer visible: one that
// could not be opened goes by another name once it can.
func dropVanished(statuses []DeviceStatus, in Sample) ([]DeviceStatus, []Event) {
	if in.Fault != "" { // it saw no device, which is not news of any
		return statuses, nil
	}
	var kept []DeviceStatus
	var events []Event
	for _, s := range statuses {
		if s.Device == "" || slices.ContainsFunc(in.Devices, func(d Device) bool { return d.ID == s.Device }) {
			kept = append(kept, s)
			continue
		}
		events = append(events, turned(s, DeviceStatus{Device: s.Device})...)
	}
	return kept, events
}

func evaluateReading(s State, d Device) reading {
	before := s.device(d.ID)
	after := before
	after.Full = d.TotalBytes > 0 && atLeast(d.UsedBytes, d.TotalBytes, fullPercent)
	if d.Fault == "" && !d.Listed.After(before.ListedAt) {
		// The list of an earlier sample is no evidence either way.
		return reading{Device: d, before: before, after: after}
	}
	fault := listFault(s, d)
	after = after.count(fault)
	if d.Listed.After(before.ListedAt) {
		after.ListedAt = d.Listed
	}
	r := reading{Device: d, before: before, after: after, evidence: true, trusted: fault == ""}
	if r.consistent() {
		r.after.ConsistentBytes, r.after.Consistent = d.UsedBytes, d.everyone()
	}
	return r
}

// count adds a good or failing reading. A device is unreliable after three
// failing ones, and restored after three good ones in a row, so that it is
// unreliable while it flaps.
func (d DeviceStatus) count(fault string) DeviceStatus {
	if fault != "" {
		d.Failures, d.Successes, d.Reason = d.Failures+1, 0, fault
		d.Unreliable = d.Unreliable || d.Failures >= failureThreshold
		return d
	}
	if d.Successes++; d.Successes >= successThreshold {
		d.Failures, d.Unreliable = 0, false
	}
	return d
}

// turned reports that the guard can no longer, or can again, enforce a slice on a device.
func turned(before, after DeviceStatus) []Event {
	switch {
	case after.Unreliable && !before.Unreliable:
		return []Event{{Kind: NotEnforcing, Device: after.Device, Reason: after.Reason}}
	case before.Unreliable && !after.Unreliable:
		return []Event{{Kind: Enforcing, Device: after.Device}}
	}
	return nil
}

// listFault returns why nothing may be concluded from a device's list, or an
// empty text when something may.
func listFault(s State, d Device) string {
	if d.Fault != "" {
		return d.Fault
	}
	known, listed := 0, 0
	for _, p := range d.Processes {
		if s.pendingRelease(d.ID, p.PID) { // it has exited, so that nobody can name it
			continue
		}
		if p.Container == "" && p.Start != 0 {
			return fmt.Sprintf("the device lists pid %d since before the process began that has this number", p.PID)
		}
		if p.Container == "" {
			// One unknown process spoils the whole list: a driver that lists PIDs of
			// another namespace may list some that happen to exist in ours.
			return fmt.Sprintf("the device lists pid %d, which is no process of this pod", p.PID)
		}
		listed++
		if p.Known {
			known++
		}
	}
	if listed > 0 && known == 0 {
		return fmt.Sprintf("the device lists %s of this pod and gives no memory for any", count(listed, "process", "processes"))
	}
	return ""
}

// unnamedPeriod is how long a container must be without a name before that is
// reported: the kubelet reports which one it is after it has begun.
const unnamedPeriod = 10 * time.Second

// unnamedSince returns since when a container without a name has been listed.
func unnamedSince(since, now time.Time, readings []reading) time.Time {
	unnamed := func(p Process) bool { return p.Container == UnnamedContainer }
	listed := slices.ContainsFunc(readings, func(r reading) bool { return slices.ContainsFunc(r.Processes, unnamed) })
	switch {
	case !listed:
		return time.Time{}
	case since.IsZero():
		return now
	}
	return since
}

// evaluateUnmanaged reports each container without a slice that uses a device, and
// the unnamed ones that stay so, once, and returns all that were reported.
func evaluateUnmanaged(s State, now time.Time, readings []reading, l limits.Limits) ([]string, []Event) {
	reported := slices.Clone(s.Unmanaged)
	var events []Event
	for _, r := range readings {
		if !r.trusted {
			continue
		}
		for _, p := range r.Processes {
			kind := Unmanaged
			if p.Container == UnnamedContainer {
				if kind = Unnamed; now.Sub(s.UnnamedSince) < unnamedPeriod {
					continue
				}
			}
			if !isRest(l, p.Container) || slices.Contains(reported, p.Container) {
				continue
			}
			reported = append(reported, p.Container)
			events = append(events, Event{Kind: kind, Container: p.Container, Device: r.ID, Process: p, UsedBytes: p.UsedBytes})
		}
	}
	return reported, events
}
