package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
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
	text := fmt.Sprintf("nothing of %s ran on a GPU for %s, and its slice holds %s: delete the pod if nobody needs it", s.container.Name, duration.HumanDuration(s.since), held)
	if l := s.pod.Limits; l.IdleTerminate > 0 && !l.DryRun {
		text += fmt.Sprintf("; what it holds of a GPU is terminated after %s of this (policy idle.terminate)", guard.FormatPeriod(l.IdleTerminate))
	}
	return text
}

// useWatch reads what ran on the devices. It is safe for concurrent use.
type useWatch struct {
	recorder   *recorder
	activities func(context.Context) []gpu.Activity
	report     func(idleSlice)

	reading sync.Mutex // one call of the driver gets what ran
}

// run reads until ctx ends.
func (w *useWatch) run(ctx context.Context) {
	tick := time.NewTicker(usePeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.read(ctx)
	}
}

// read reads what ran since the last reading, and reports what is idle.
func (w *useWatch) read(ctx context.Context) {
	w.reading.Lock()
	idle := w.recorder.recordUse(time.Now(), w.activities(ctx))
	w.reading.Unlock()
	for _, s := range idle {
		w.report(s)
	}
}

// idle returns the containers of a pod whose processes are to be terminated. It
// implements node.Agent.Idle.
func (w *useWatch) idle(ctx context.Context, uid string, anew bool) []guard.Idle {
	if anew {
		w.read(ctx)
	}
	return w.recorder.due(uid)
}

// recordUse records what ran since the last call. It returns the slices in which
// nothing has run for so long that their owners are to get an Event, each once.
func (r *recorder) recordUse(now time.Time, activities []gpu.Activity) (idle []idleSlice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordUtilization(activities)
	tenant := func(uid string) bool { _, promised := r.promised(uid); return promised }
	for uid, record := range r.pods {
		if p, promised := r.promised(uid); promised {
			idle = append(idle, record.recordUse(p, useReading{now, r.last, activities, tenant})...)
		}
	}
	return idle
}

// recordUse records what ran in the containers of one pod since the last reading.
func (p *podRecord) recordUse(of node.Pod, u useReading) (idle []idleSlice) {
	known := !p.readUse.IsZero() && u.at.Sub(p.readUse) <= longestUseGap
	for _, c := range of.Limits.Containers {
		q := p.quiet[c.Name]
		if q == nil {
			q = &quietness{}
			p.quiet[c.Name] = q
		}
		changed := q.changed(usesOf(of, c.Name, u.sample))
		if !known || !p.isQuiet(of, c.Name, u) {
			q.restless()
			continue
		}
		if q.record(p.readUse, u.at, !changed && !u.mayHaveRun(of, c.Name), of.Limits) {
			idle = append(idle, idleSlice{of, c, u.at.Sub(q.since)})
		}
	}
	p.readUse = u.at
	return idle
}

// isQuiet reports whether it is certain that nothing of a container ran on any
// device since the last reading.
func (p *podRecord) isQuiet(of node.Pod, container string, u useReading) bool {
	if u.sample.Fault != "" || len(u.sample.Devices) == 0 {
		return false
	}
	for _, d := range u.sample.Devices {
		read := slices.ContainsFunc(u.activities, func(a gpu.Activity) bool { return a.Device == d.ID })
		mayUse := usesDevice(of, d) || p.mayUse(d.ID)
		a := u.activity(d.ID)
		switch {
		case d.Fault != "":
			return false
		case !read && mayUse, read && !knowsAll(a, d) && (mayUse || len(p.usages) == 0):
			return false // somebody ran there, and it is not known who
		case ranIn(of, container, d, a):
			return false
		}
	}
	return true
}

// mayUse reports whether a pod that uses devices may have used one between two
// lists: it was listed there, or on fewer than it was given.
func (p *podRecord) mayUse(device string) bool {
	listed := map[string]bool{}
	for _, u := range p.usages {
		listed[u.Device] = true
	}
	return listed[device] || len(listed) > 0 && len(listed) < p.pod.Given()
}

// knowsAll reports whether everybody who ran on a device is listed there.
func knowsAll(a gpu.Activity, d node.Device) bool {
	for pid := range a.Ran {
		if !slices.ContainsFunc(d.Processes, func(p node.Process) bool { return p.PID == pid }) {
			return false
		}
	}
	return a.Complete
}

// usesDevice reports whether a device lists a process of the pod.
func usesDevice(p node.Pod, d node.Device) bool {
	return slices.ContainsFunc(d.Processes, func(process node.Process) bool { return process.Member.PodUID == p.UID })
}

// mayBeIn reports whether a process is in a container, or in one of the pod that
// has no slice: what has no name may be any container's.
func mayBeIn(p node.Pod, container string, process node.Process) bool {
	name := p.ContainerName(process.Member.ContainerID)
	_, named := p.Limits.Container(name)
	return process.Member.PodUID == p.UID && (name == container || !named)
}

// ranIn reports whether something of a container ran on a device, or may have: the
// driver reports a server in the place of clients of an MPS daemon.
func ranIn(p node.Pod, container string, d node.Device, a gpu.Activity) bool {
	return slices.ContainsFunc(d.Processes, func(process node.Process) bool {
		return mayBeIn(p, container, process) && (process.MPS || p.UsesMPS() || a.Ran[process.PID])
	})
}
