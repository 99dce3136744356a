package guard

import "slices"

// Memory that a process exports and another maps may be listed for both. The
// device has it once: where a container's processes come to be listed with more
// than the device came to have in use, the rest is taken for shared, until they
// are listed with less. Neighbors who free memory at the same moment look alike,
// so that a container is given the benefit of the doubt.

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
		shared += grown - min(max(moved, min(grown, 0)), max(grown, 0))
	}
	return min(max(shared, 0), listed-largest)
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

// sharedOn returns what was taken for shared of a container's memory on a device.
func sharedOn(usages []Usage, container, device string) int64 {
	i := slices.IndexFunc(usages, func(u Usage) bool { return u.Container == container && u.Device == device })
	if i < 0 {
		return 0
	}
	return usages[i].SharedBytes
}
