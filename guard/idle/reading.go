package idle

import (
	"slices"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/node"
)

// isQuiet reports whether it is certain that nothing of a container ran on any
// device since the last reading.
func (r Reading) isQuiet(p Pod, container string) bool {
	if r.Sample.Fault != "" || len(r.Sample.Devices) == 0 {
		return false
	}
	for _, d := range r.Sample.Devices {
		a, read := r.activity(d.ID)
		mayUse := lists(d, p.Pod) || p.mayUse(d.ID)
		switch {
		case d.Fault != "":
			return false
		case !read && mayUse, read && !knowsAll(a, d) && (mayUse || len(p.Usages) == 0):
			return false // somebody ran there, and it is not known who
		case ranIn(p.Pod, container, d, a):
			return false
		}
	}
	return true
}

// mayUse reports whether a pod that uses devices may have used one between two
// lists: it was listed there, or on fewer than it has.
func (p Pod) mayUse(device string) bool {
	listed := map[string]bool{}
	for _, u := range p.Usages {
		listed[u.Device] = true
	}
	return listed[device] || len(listed) > 0 && len(listed) < p.Given()
}

// mayHaveRun reports whether the driver has seen a process of a container of which
// it cannot say that it ran: less than a percent, or a client of an MPS server that
// is listed as an ordinary process.
func (r Reading) mayHaveRun(p node.Pod, container string) bool {
	for _, d := range r.Sample.Devices {
		a, _ := r.activity(d.ID)
		for _, process := range d.Processes {
			if mayBeIn(p, container, process) && (r.servedOn(d) || a.Sampled[process.PID]) {
				return true
			}
		}
	}
	return false
}

// servedOn reports whether a device lists an MPS server of the node: its clients'
// work is reported as the server's.
func (r Reading) servedOn(d node.Device) bool {
	return slices.ContainsFunc(d.Processes, func(p node.Process) bool {
		return node.IsMPSServer(p.Command) && !r.Promised(p.Member.PodUID)
	})
}

// usesOf returns the uses by processes of a container, and by processes of the pod
// that may be in it.
func (r Reading) usesOf(p node.Pod, container string) map[use]int64 {
	uses := map[use]int64{}
	for _, d := range r.Sample.Devices {
		for _, process := range d.Processes {
			if mayBeIn(p, container, process) {
				uses[use{d.ID, process.PID, process.Start}] = process.UsedBytes
			}
		}
	}
	return uses
}

// activity returns the activity of a device; read: it is known.
func (r Reading) activity(device string) (a guard.Activity, read bool) {
	for _, a := range r.Activities {
		if a.Device == device {
			return a, true
		}
	}
	return guard.Activity{}, false
}

// knowsAll reports whether everybody who ran on a device is listed there.
func knowsAll(a guard.Activity, d node.Device) bool {
	for pid := range a.Ran {
		if !slices.ContainsFunc(d.Processes, func(p node.Process) bool { return p.PID == pid }) {
			return false
		}
	}
	return a.Complete
}

// lists reports whether a device lists a process of the pod.
func lists(d node.Device, p node.Pod) bool {
	return slices.ContainsFunc(d.Processes, func(process node.Process) bool { return process.Member.PodUID == p.UID })
}

// mayBeIn reports whether a process is in a container, or in one of the pod that
// has no slice: a process without a name may be any container's.
func mayBeIn(p node.Pod, container string, process node.Process) bool {
	name := p.ContainerName(process.Member.ContainerID)
	_, named := p.Limits.Container(name)
	return process.Member.PodUID == p.UID && (name == container || !named)
}

// ranIn reports whether something of a container ran on a device, or may have: the
// driver reports a server in the place of clients of an MPS daemon.
func ranIn(p node.Pod, container string, d node.Device, a guard.Activity) bool {
	return slices.ContainsFunc(d.Processes, func(process node.Process) bool {
		return mayBeIn(p, container, process) && (process.MPS || p.UsesMPS() || a.Ran[process.PID])
	})
}
