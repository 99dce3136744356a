package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
)

// usePeriod is how often the agent reads what ran on the devices. The driver
// remembers for longer.
const usePeriod = 10 * time.Second

// idleSlice is a container's slice in which nothing ran for as long as the policy
// lets it.
type idleSlice struct {
	pod       node.Pod
	container limits.Container
	since     time.Duration
}

// message returns what the pod's owner reads.
func (s idleSlice) message() string {
	held := guard.FormatBytes(s.container.SliceBytes)
	if s.container.GPUs > 1 {
		held += fmt.Sprintf(" on each of %d GPUs", s.container.GPUs)
	}
	return fmt.Sprintf("nothing of %s ran on a GPU for %s, and its slice holds %s: delete the pod if nobody needs it", s.container.Name, duration.HumanDuration(s.since), held)
}

// watchUse reads what ran on the devices until ctx ends.
func (r *recorder) watchUse(ctx context.Context, activities func(context.Context) []gpu.Activity, report func(idleSlice)) {
	tick := time.NewTicker(usePeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range r.recordUse(time.Now(), activities(ctx)) {
			report(s)
		}
	}
}

// recordUse records what ran since the last call. It returns the slices in which
// nothing has run for as long as their policies let them, each once.
func (r *recorder) recordUse(now time.Time, activities []gpu.Activity) (idle []idleSlice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordUtilization(activities)
	for uid, record := range r.pods {
		p, promised := r.promised(uid)
		if !promised {
			continue
		}
		for _, c := range p.Limits.Containers {
			if record.isQuiet(p, c.Name, r.last, activities) {
				idle = append(idle, record.quiet(p, c, now)...)
				continue
			}
			delete(record.quietSince, c.Name)
			delete(record.reported, c.Name)
		}
		record.readUse = now
	}
	return idle
}

// quiet records that nothing ran in a container since the last reading.
func (p *podRecord) quiet(of node.Pod, c limits.Container, now time.Time) []idleSlice {
	if p.readUse.IsZero() {
		return nil
	}
	if _, known := p.quietSince[c.Name]; !known {
		p.quietSince[c.Name] = p.readUse
	}
	since, least := now.Sub(p.quietSince[c.Name]), of.Limits.IdleReport
	if least == 0 || since < least || p.reported[c.Name] {
		return nil
	}
	p.reported[c.Name] = true
	return []idleSlice{{of, c, since}}
}

// isQuiet reports whether it is certain that nothing of a container ran on any
// device since the last reading.
func (p *podRecord) isQuiet(of node.Pod, container string, sample node.Sample, activities []gpu.Activity) bool {
	if sample.Fault != "" || len(sample.Devices) == 0 {
		return false
	}
	for _, d := range sample.Devices {
		i := slices.IndexFunc(activities, func(a gpu.Activity) bool { return a.Device == d.ID })
		seen := slices.ContainsFunc(p.usages, func(u guard.Usage) bool { return u.Device == d.ID })
		switch {
		case d.Fault != "":
			return false
		case i < 0 && (seen || usesDevice(of, d)), i >= 0 && !activities[i].Complete && (seen || len(p.usages) == 0):
			return false // somebody ran there, and it is not known who
		case i >= 0 && ranIn(of, container, d, activities[i]):
			return false
		}
	}
	return true
}

// usesDevice reports whether a device lists a process of the pod.
func usesDevice(p node.Pod, d node.Device) bool {
	return slices.ContainsFunc(d.Processes, func(process node.Process) bool { return process.Member.PodUID == p.UID })
}

// ranIn reports whether something of a container ran on a device, or may have: the
// driver reports a server in the place of clients of an MPS daemon, and what has no
// name may be any container's.
func ranIn(p node.Pod, container string, d node.Device, a gpu.Activity) bool {
	return slices.ContainsFunc(d.Processes, func(process node.Process) bool {
		name := p.ContainerName(process.Member.ContainerID)
		_, named := p.Limits.Container(name)
		mine := process.Member.PodUID == p.UID && (name == container || !named)
		return mine && (process.MPS || p.UsesMPS() || a.Ran[process.PID])
	})
}
