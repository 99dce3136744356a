package guard

import (
	"cmp"
	"slices"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// UnnamedContainer stands for the containers of the pod whose names the guard
// cannot learn, since a process of them changed its root or its mounts. It is no
// container's name.
const UnnamedContainer = "an unnamed container"

// unnamedShare returns what the unnamed containers may use of the device: what
// the slices of the pod leave beside the named ones. More than that is more than
// the pod was given, whichever containers they are.
func unnamedShare(l limits.Limits, d Device, usages []Usage) limits.Container {
	share := limits.Container{Name: UnnamedContainer}
	for _, c := range l.Containers {
		used := usedBytes(d, c.Name, sharedOn(usages, c.Name, d.ID))
		share.SliceBytes += max(0, c.SliceBytes-used)
		share.LimitBytes += max(0, c.LimitBytes-used)
		share.GPUs += c.GPUs
	}
	return share
}

// shareOf returns what the container with that name may use of the device, and
// whether it has a slice.
func shareOf(l limits.Limits, name string, d Device, usages []Usage) (limits.Container, bool) {
	if name == UnnamedContainer {
		return unnamedShare(l, d, usages), true
	}
	return l.Container(name)
}

// holding is what a container uses of one device.
type holding struct {
	device string
	bytes  int64
}

// held returns the devices that the container uses, the one it uses most first,
// as the readings show it and else the last usages.
func held(container string, usages []Usage, readings []reading) []holding {
	var all []holding
	for _, u := range usages {
		read := slices.ContainsFunc(readings, func(r reading) bool { return r.ID == u.Device && r.trusted })
		if u.Container == container && !read && u.UsedBytes > 0 {
			all = append(all, holding{u.Device, u.UsedBytes})
		}
	}
	for _, r := range readings {
		if bytes := usedBytes(r.Device, container, 0); r.trusted && bytes > 0 {
			all = append(all, holding{r.ID, bytes})
		}
	}
	slices.SortFunc(all, func(a, b holding) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.device, b.device))
	})
	return all
}

// beyondGPUs reports whether the device is one more than the container was given:
// of several, those that it uses least.
func beyondGPUs(c limits.Container, device string, held []holding) bool {
	given := min(c.GPUs, len(held))
	return slices.ContainsFunc(held[given:], func(h holding) bool { return h.device == device })
}
