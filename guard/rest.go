package guard

import (
	"cmp"
	"slices"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// UnnamedContainer represents the containers of the pod whose names the guard
// cannot learn, since a process of them changed its root or its mounts. It is no
// container's name.
const UnnamedContainer = "an unnamed container"

// restLimits returns the limit of each container without a slice that uses the
// device, or did, and of the unnamed ones.
func restLimits(l limits.Limits, d Device, usages []Usage) []limits.Container {
	names := []string{UnnamedContainer}
	add := func(name string) {
		if isRest(l, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, p := range d.Processes {
		add(p.Container)
	}
	for _, u := range usages {
		if u.Device == d.ID {
			add(u.Container)
		}
	}
	all := make([]limits.Container, 0, len(names))
	for _, name := range names {
		all = append(all, restLimit(l, name, d, usages))
	}
	return all
}

// isRest reports whether a container has neither a slice nor a part in enforcing
// them.
func isRest(l limits.Limits, name string) bool {
	_, sliced := l.Container(name)
	return !sliced && name != "" && name != limits.GuardContainer && name != limits.CheckContainer
}

// restLimit returns the limit of the container without a slice on the device: the
// rest of the pod's slices beside the containers that have them, and the others
// that have none. More than that is more than the pod has.
func restLimit(l limits.Limits, name string, d Device, usages []Usage) limits.Container {
	limit := limits.Container{Name: name}
	used := func(container string) int64 { return usedBytes(d, container, doubleCountedOn(usages, container, d.ID)) }
	for _, c := range l.Containers {
		limit.SliceBytes += max(0, c.SliceBytes-used(c.Name))
		limit.LimitBytes += max(0, c.LimitBytes-used(c.Name))
		limit.GPUs += c.GPUs
	}
	counted := []string{name}
	for _, p := range d.Processes {
		if isRest(l, p.Container) && !slices.Contains(counted, p.Container) {
			counted = append(counted, p.Container)
			limit.SliceBytes = max(0, limit.SliceBytes-used(p.Container))
			limit.LimitBytes = max(0, limit.LimitBytes-used(p.Container))
		}
	}
	return limit
}

// limitOf returns the limit of the container with that name on the device, and
// whether it is limited.
func limitOf(l limits.Limits, name string, d Device, usages []Usage) (limits.Container, bool) {
	if isRest(l, name) {
		return restLimit(l, name, d, usages), true
	}
	return l.Container(name)
}

// holding is a container's use of one device.
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
		// A device that could not be read this time counts with what was read last.
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

// beyondGPUs reports whether the container uses more devices than it has, and the
// device is among the ones that it uses least.
func beyondGPUs(c limits.Container, device string, held []holding) bool {
	given := min(c.GPUs, len(held))
	return slices.ContainsFunc(held[given:], func(h holding) bool { return h.device == device })
}
