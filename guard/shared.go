package guard

import (
	"slices"
	"time"
)

// Memory that a process exports and another maps may be listed for both. The
// device has it once: where a container's processes come to be listed with more
// than the device came to have in use, and others were seen to free, the rest is
// taken for shared, until they are listed with less. Neighbors that the reader does
// not see, or whose memory no list shows, may free at the same moment and look
// alike. So the container is given the benefit of the doubt, and where that decides
// that it is within its limit it is reported.

// settled reports whether list and total of a device belong together.
func (r reading) settled() bool {
	return r.trusted && !r.Moving && r.UsedBytes > 0
}

// sharedBytes returns how much of what the container's processes are listed with
// is listed twice, after a reading in which they are listed with so much.
func (u Usage) sharedBytes(r reading, listed, largest int64) int64 {
	shared := u.SharedBytes
	if r.settled() && r.before.SettledBytes > 0 {
		grown, moved := listed-u.ListedBytes, r.UsedBytes-r.before.SettledBytes
		if grown != 0 { // what others share need not leave the device when one of them lets go of it
			moved += max(0, r.freedOutside(u)-r.Shared)
		}
		shared += grown - min(max(moved, min(grown, 0)), max(grown, 0))
	}
	return min(max(shared, 0), listed-largest)
}

// freedOutside returns how much less processes outside a container are listed with
// than when list and total last belonged together.
func (r reading) freedOutside(u Usage) (freed int64) {
	own := append(processesOf(u.Container, r.Processes), u.Processes...)
	now := map[int]Process{}
	for _, p := range r.everyone() {
		now[p.PID] = p
	}
	for _, p := range r.before.Settled {
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

// doubtPeriod is how long the benefit of the doubt lasts before it is reported.
const doubtPeriod = 5 * time.Second

// evaluateDoubt reports once that a container is within its limit only if what is
// taken to be listed twice is. That is certain of as much as all processes together
// are listed with beyond what the device has in use, and what others share.
func (u Usage) evaluateDoubt(r reading) (Usage, []Event) {
	if u.SharedBytes == 0 {
		u.DoubtSince, u.Doubted = time.Time{}, false
		return u, nil
	}
	if !r.settled() {
		return u, nil
	}
	var listed int64
	for _, p := range r.everyone() {
		if p.Known {
			listed += p.UsedBytes
		}
	}
	certain := min(u.SharedBytes, max(0, listed-r.UsedBytes-r.Shared))
	if u.UsedBytes > u.LimitBytes || usedBytes(r.Device, u.Container, certain) <= u.LimitBytes {
		u.DoubtSince, u.Doubted = time.Time{}, false
		return u, nil
	}
	if u.DoubtSince.IsZero() {
		u.DoubtSince = r.Listed
	}
	if u.Doubted || r.Listed.Sub(u.DoubtSince) < doubtPeriod {
		return u, nil
	}
	u.Doubted = true
	return u, []Event{u.doubt()}
}

// doubt is the report that a container may be over its limit.
func (u Usage) doubt() Event {
	e := u.notTerminated(FormatBytes(u.SharedBytes) + " of it may be listed twice")
	e.UsedBytes += u.SharedBytes
	return e
}

// listedBytes returns what a container's processes are listed with on a device,
// all of them and the largest.
func listedBytes(d Device, container string) (sum, largest int64) {
	for _, p := range d.Processes {
		if p.Container == container && p.Known {
			sum, largest = sum+p.UsedBytes, max(largest, p.UsedBytes)
		}
	}
	return sum, largest
}

// beside returns the reading with what other containers of the pod share.
func (r reading) beside(usages []Usage, own Usage) reading {
	for _, u := range usages {
		if u.Device == own.Device && u.Container != own.Container {
			r.Shared += u.SharedBytes
		}
	}
	return r
}

// sharedOn returns what was taken for shared of a container's memory on a device.
func sharedOn(usages []Usage, container, device string) int64 {
	i := slices.IndexFunc(usages, func(u Usage) bool { return u.Container == container && u.Device == device })
	if i < 0 {
		return 0
	}
	return usages[i].SharedBytes
}
