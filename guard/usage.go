package guard

import (
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// evaluateUsage compares every container with its effective limit on every
// device that the readings have news of.
func evaluateUsage(s State, in Sample, readings []reading, l limits.Limits) ([]Usage, []Event) {
	usages := interruptUnread(s.Usages, in)
	var events []Event
	for _, r := range readings {
		if !r.evidence {
			continue
		}
		for _, c := range append(slices.Clone(l.Containers), restLimits(l, r.Device, usages)...) {
			before, known := find(usages, Usage{Container: c.Name, Device: r.ID}, byPlace)
			if !known && len(processesOf(c.Name, r.Processes)) == 0 {
				continue
			}
			before.Beyond = beyondGPUs(c, r.ID, held(c.Name, usages, readings))
			after, warned := nextUsage(before, c, r.beside(s.Usages, before), l)
			usages = put(usages, after, byPlace)
			if _, sliced := l.Container(c.Name); sliced {
				warned = append(reportLostProcess(s, before, c, r), warned...)
			}
			events = append(events, warned...)
		}
	}
	return usages, events
}

// interruptUnread stops the observation of every usage whose device the sample
// did not read.
func interruptUnread(usages []Usage, in Sample) []Usage {
	usages = slices.Clone(usages)
	for i, u := range usages {
		read := slices.ContainsFunc(in.Devices, func(d Device) bool { return d.ID == u.Device })
		if !read || in.Fault != "" {
			usages[i] = u.endRun()
		}
	}
	return usages
}

// nextUsage returns a container's usage of a device after a reading.
func nextUsage(u Usage, c limits.Container, r reading, l limits.Limits) (Usage, []Event) {
	if !r.trusted {
		return u.endRun(), nil
	}
	if r.sinceLast() > MaxSampleGap(l) { // the sample to be confirmed is too old
		u.Confirming = false
	}
	u = u.measure(r)
	u.SliceBytes, u.LimitBytes = c.SliceBytes, effectiveLimit(l, c, r.Device)
	if u.Beyond { // it has no part of that device
		u.LimitBytes = 0
	}
	var events []Event
	if _, sliced := l.Container(c.Name); sliced {
		u, events = warn(u, c, r.taken, l)
	}
	u, doubted := u.evaluateDoubt(r)
	events = append(events, doubted...)
	switch {
	case u.UsedBytes <= u.LimitBytes:
		u = u.endRun().drain(r, l)
	case u.OverSince.IsZero(): // it may have come over the limit just now
		u.OverSince = r.Listed
	default: // over at both ends of a gap is over in between
		u.OverFor += r.sinceLast()
	}
	return u, events
}

// MaxSampleGap returns how far apart two samples may be: beyond it the guard
// did not run for a while.
func MaxSampleGap(l limits.Limits) time.Duration { return 2*l.Interval + 2*time.Second }

// endRun stops the observation of a usage over its limit. The time that it was
// over stays, so that who frees memory and allocates it again in turns is over,
// too.
func (u Usage) endRun() Usage {
	u.OverSince, u.Confirming, u.Reported = time.Time{}, false, ""
	return u
}

// drain takes the time within the limit off the time over it, at a tenth of the
// speed.
func (u Usage) drain(r reading, l limits.Limits) Usage {
	within := min(r.sinceLast(), MaxSampleGap(l))
	u.OverFor = max(0, min(u.OverFor, l.Grace)-within/drainFactor)
	return u
}

// measure takes in the container's use, and how fast that grows.
func (u Usage) measure(r reading) Usage {
	u.Processes = processesOf(u.Container, r.Processes)
	listed, largest := listedBytes(r.Device, u.Container)
	u.DoubleCountedBytes = u.doubleCountedBytes(r, listed, largest)
	if r.consistent() {
		u.ListedBytes = listed
	}
	bytes := usedBytes(r.Device, u.Container, u.DoubleCountedBytes)
	u.GrowthRate = 0
	if grown, since := bytes-u.UsedBytes, r.sinceLast(); grown > 0 && since > 0 {
		u.GrowthRate = float64(grown) / since.Seconds()
	}
	u.MeasuredAt, u.UsedBytes, u.PeakBytes = r.taken, bytes, max(u.PeakBytes, bytes)
	return u
}

// usedBytes returns a container's use of a device, so much of whose listed memory
// is listed twice.
func usedBytes(d Device, container string, twice int64) int64 {
	sum, largest := listedBytes(d, container)
	sum = max(sum-twice, largest)
	if d.UsedBytes > 0 {
		sum = min(sum, d.UsedBytes)
	}
	for _, charge := range d.Charges {
		// The path to the cgroup leads through the container's mounts. A charge of less
		// than one of its processes uses is another cgroup's.
		if charge.Container == container && charge.UsedBytes >= largest {
			sum = min(sum, charge.UsedBytes)
		}
	}
	return sum
}

// effectiveLimit returns a container's limit on the device at present.
func effectiveLimit(l limits.Limits, c limits.Container, d Device) int64 {
	nearlyFull := d.TotalBytes > 0 && atLeast(d.UsedBytes, d.TotalBytes, l.PressurePercent)
	if l.Act == limits.ActPressure && !nearlyFull {
		return c.LimitBytes
	}
	return c.SliceBytes
}

// warn warns the owner once when usage comes to the warning threshold, and again
// only after it was clearly below.
func warn(u Usage, c limits.Container, now time.Time, l limits.Limits) (Usage, []Event) {
	if u.UsedBytes == 0 || !atLeast(u.UsedBytes, c.SliceBytes, l.WarnPercent) { // the unnamed may have a slice of 0
		u.NearLimit = 0
		return rearm(u, c, now, l)
	}
	u.NearLimit, u.BelowSince = u.NearLimit+1, time.Time{}
	// Past the limit the first sample warns: the termination may follow before a second.
	if u.Warned || u.NearLimit < warnAfter && u.UsedBytes <= u.LimitBytes {
		return u, nil
	}
	u.Warned = true
	return u, []Event{{Kind: NearLimit, Container: u.Container, Device: u.Device, UsedBytes: u.UsedBytes, LimitBytes: u.LimitBytes,
		SliceBytes: c.SliceBytes, Reason: consequence(l, c, u.LimitBytes)}}
}

// rearm re-arms the warning once usage was clearly below the threshold for a
// while.
func rearm(u Usage, c limits.Container, now time.Time, l limits.Limits) (Usage, []Event) {
	if !u.Warned || atLeast(u.UsedBytes, c.SliceBytes, l.WarnPercent-belowMargin) {
		u.BelowSince = time.Time{}
		return u, nil
	}
	if u.BelowSince.IsZero() {
		u.BelowSince = now
	}
	if now.Sub(u.BelowSince) < belowPeriod {
		return u, nil
	}
	u.Warned, u.BelowSince = false, time.Time{}
	return u, []Event{{Kind: BelowLimit, Container: u.Container, Device: u.Device, UsedBytes: u.UsedBytes, SliceBytes: c.SliceBytes}}
}

// reportLostProcess reports to an owner whose process exited on a full device that
// it did not cause the shortage. u is the usage before the reading.
func reportLostProcess(s State, u Usage, c limits.Container, r reading) []Event {
	full := r.before.Full || r.after.Full
	// A container over its slice, or one being terminated, has a part in the shortage.
	if !r.trusted || !full || u.UsedBytes > c.SliceBytes || s.InProgress != nil && s.InProgress.Container == c.Name {
		return nil
	}
	listed := processesOf(c.Name, r.Processes)
	for _, p := range u.Processes {
		if !contains(listed, p.PID) && !s.pendingRelease(r.ID, p.PID) {
			return []Event{{Kind: OOMWithinSlice, Container: c.Name, Device: r.ID, Process: p, UsedBytes: u.UsedBytes, SliceBytes: c.SliceBytes}}
		}
	}
	return nil
}

func atLeast(part, whole int64, percent int) bool { return part*100 >= whole*int64(percent) }
