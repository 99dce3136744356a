package guard

import (
	"slices"
	"time"
)

// Memory that a process exports and another maps may be listed for both. The
// device has it once: where a container's processes come to be listed with more
// than the device came to have in use, and others were seen to free, the rest is
// taken to be listed twice, until they are listed with less. Neighbors that the reader does
// not see, or whose memory no list shows, may free at the same moment and look
// alike. So the container has the benefit of the doubt, and where that decides that it is
// within its limit it is reported.

// consistent reports whether the list and the total of a device belong together.
func (r reading) consistent() bool {
	return r.trusted && !r.Moving && r.UsedBytes > 0
}

// doubleCountedBytes returns how much of the container's listed memory is listed twice,
// after a reading in which its processes are listed with so much.
func (u Usage) doubleCountedBytes(r reading, listed, largest int64) int64 {
	twice := u.DoubleCountedBytes
	if r.consistent() && r.before.ConsistentBytes > 0 {
		grown, moved := listed-u.ListedBytes, r.UsedBytes-r.before.ConsistentBytes
		if grown != 0 { // memory that others share need not leave the device when one of them lets go of it
			moved += max(0, r.freedOutside(u)-r.DoubleCounted)
		}
		twice += grown - min(max(moved, min(grown, 0)), max(grown, 0))
	}
	return min(max(twice, 0), listed-largest)
}

// freedOutside returns how much less processes outside a container are listed with
// than when list and total last belonged together.
func (r reading) freedOutside(u Usage) (freed int64) {
	own := append(processesOf(u.Container, r.Processes), u.Processes...)
	now := map[int]Process{}
	for _, p := range r.everyone() {
		now[p.PID] = p
	}
	for _, p := range r.before.Consistent {
		// The container's own processes free its own memory, also processes that were in another container.
		if p.Container == u.Container || !p.Known || slices.ContainsFunc(own, p.same) {
			continue
		}
		switch q, listed := now[p.PID]; {
		case !listed:
			freed += p.UsedBytes
		case q.Known: // also of a process that has exited and is listed still
			freed += max(0, p.UsedBytes-q.UsedBytes)
		}
	}
	return freed
}

// everyone returns the processes that the device lists, of all pods that are seen.
func (d Device) everyone() []Process {
	if d.Everyone != nil {
		return d.Everyone
	}
	return d.Processes
}

const (
	// doubtPeriod is how long the benefit of the doubt lasts before it is reported.
	doubtPeriod = 5 * time.Second
	// movingDoubtPeriod is how long it lasts while no reading settles it, since the
	// device's use moves on and on: whoever moves it would never be reported.
	movingDoubtPeriod = 10 * time.Second
)

// evaluateDoubt reports once that a container is within its limit only if its
// double-counted memory is indeed listed twice. That is certain of as much as all
// processes together are listed with beyond the device's use, and the others'
// double-counted memory. A container that exceeds its limit for a moment resolves
// no doubt.
func (u Usage) evaluateDoubt(r reading) (Usage, []Event) {
	if u.DoubleCountedBytes == 0 {
		u.DoubtSince, u.Doubted = time.Time{}, false
		return u, nil
	}
	if u.UsedBytes > u.LimitBytes {
		return u, nil
	}
	period := movingDoubtPeriod
	if r.consistent() {
		if period = doubtPeriod; usedBytes(r.Device, u.Container, r.certain(u)) <= u.LimitBytes {
			u.DoubtSince, u.Doubted = time.Time{}, false
			return u, nil
		}
		if u.DoubtSince.IsZero() {
			u.DoubtSince = r.Listed
		}
	}
	if u.DoubtSince.IsZero() || u.Doubted || r.Listed.Sub(u.DoubtSince) < period {
		return u, nil
	}
	u.Doubted = true
	return u, []Event{u.doubt()}
}

// certain returns how much of a container's memory is listed twice for certain.
func (r reading) certain(u Usage) int64 {
	var listed int64
	for _, p := range r.everyone() {
		if p.Known {
			listed += p.UsedBytes
		}
	}
	return min(u.DoubleCountedBytes, max(0, listed-r.UsedBytes-r.DoubleCounted))
}

// doubt is the report that a container may be over its limit.
func (u Usage) doubt() Event {
	e := u.notTerminated(FormatBytes(u.DoubleCountedBytes) + " of it may be listed twice")
	e.UsedBytes += u.DoubleCountedBytes
	return e
}

// listedBytes returns the listed memory of a container's processes on a device, all
// of them and the largest.
func listedBytes(d Device, container string) (sum, largest int64) {
	for _, p := range d.Processes {
		if p.Container == container && p.Known {
			sum, largest = sum+p.UsedBytes, max(largest, p.UsedBytes)
		}
	}
	return sum, largest
}

// beside returns the reading with the double-counted memory of the pod's other
// containers.
func (r reading) beside(usages []Usage, own Usage) reading {
	for _, u := range usages {
		if u.Device == own.Device && u.Container != own.Container {
			r.DoubleCounted += u.DoubleCountedBytes
		}
	}
	return r
}

// doubleCountedOn returns the part of a container's memory on a device that is
// taken to be listed twice.
func doubleCountedOn(usages []Usage, container, device string) int64 {
	i := slices.IndexFunc(usages, func(u Usage) bool { return u.Container == container && u.Device == device })
	if i < 0 {
		return 0
	}
	return usages[i].DoubleCountedBytes
}
