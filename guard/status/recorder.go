// Package status records the state of a node's pods: metrics, the report on the
// node's Lease, and the slices in which nothing runs.
//
// The package imports packages of guard, and no Kubernetes package.
package status

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/idle"
	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/guard/shorten"
)

// Recorder records the state of a node's pods. It is safe for concurrent use.
type Recorder struct {
	promised func(uid string) (node.Pod, bool)

	mu   sync.Mutex
	pods map[string]*Pod // by UID
	busy map[Place]float64
	last node.Sample
}

// longestReason bounds a reason, in bytes: a Lease contains the reasons of all pods of a node.
const longestReason = 200

const mebibyte = 1 << 20

// Pod is the record of one pod.
type Pod struct {
	Pod          node.Pod
	Usages       []guard.Usage
	Sampled      time.Time             // when Usages were; zero: never
	ByteSeconds  map[[2]string]float64 // by container and device
	Warnings     map[string]int        // by container
	Terminations map[[2]string]int     // by container and result
	NotEnforcing string                // why its slice is not enforced; empty: it is
	Idle         idle.State

	notHeld string // the first report of how the pod may exceed its slices
}

// Place is a container on a device.
type Place struct{ Namespace, Pod, Container, Device string }

// Snapshot is the content of a Recorder at one time.
type Snapshot struct {
	Pods []Pod
	Busy map[Place]float64 // 1: all of the device
	Last node.Sample
}

// New returns a Recorder. promised returns the pods with a promise of a slice that is enforced.
func New(promised func(uid string) (node.Pod, bool)) *Recorder {
	return &Recorder{promised: promised, pods: map[string]*Pod{}}
}

// Add begins to record a pod.
func (r *Recorder) Add(p node.Pod) *Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	added := &Pod{Pod: p, Warnings: map[string]int{}, Terminations: map[[2]string]int{}, ByteSeconds: map[[2]string]float64{}}
	r.pods[p.UID] = added
	return added
}

// Remove forgets a pod.
func (r *Recorder) Remove(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, uid)
}

// Count counts an event of a pod.
func (r *Recorder) Count(p *Pod, e guard.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Kind {
	case guard.NearLimit:
		p.Warnings[e.Container]++
	case guard.TerminationResult:
		p.Terminations[[2]string{e.Container, string(e.Outcome.Result)}]++
	}
}

// Observe records the state of a pod's guard after a sample, and adds the use since
// the sample before: the use at that sample, until now.
func (r *Recorder) Observe(p *Pod, taken time.Time, s guard.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range p.Usages {
		p.ByteSeconds[[2]string{u.Container, u.Device}] += float64(u.UsedBytes) * taken.Sub(p.Sampled).Seconds()
	}
	notHeld := s.NotHeld()
	if notHeld != "" { // its figures change with each sample: the first report stays for as long as there is one
		notHeld = cmp.Or(p.notHeld, notHeld)
	}
	p.Usages, p.Sampled, p.notHeld, p.NotEnforcing = s.Usages, taken, notHeld, cmp.Or(s.NotEnforcing(), notHeld)
}

// Sample records a sample, and returns the limits of the pods that it is for.
func (r *Recorder) Sample(s node.Sample) (pods []limits.Limits) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = s
	for _, p := range r.pods {
		pods = append(pods, p.Pod.Limits)
	}
	return pods
}

// LastSample returns when the devices were read last, and whether they could be.
func (r *Recorder) LastSample() (at time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.Taken, r.last.Fault == ""
}

// Use records the activity since the last call. It returns a notice for each slice
// in which nothing has run for so long that its owner is to be notified, each once.
func (r *Recorder) Use(now time.Time, activities []guard.Activity) (all []idle.Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordUtilization(activities)
	reading := idle.Reading{At: now, Sample: r.last, Activities: activities,
		Promised: func(uid string) bool { _, ok := r.promised(uid); return ok }}
	for uid, p := range r.pods {
		if current, promised := r.promised(uid); promised {
			var notices []idle.Notice
			p.Idle, notices = idle.Step(p.Idle, idle.Pod{Pod: current, Usages: p.Usages}, reading)
			all = append(all, notices...)
		}
	}
	return all
}

// Due returns the containers of a pod whose processes are to be terminated for want
// of use.
func (r *Recorder) Due(uid string) []guard.Idle {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil {
		return p.Idle.Due()
	}
	return nil
}

// Report returns the report on the node's Lease.
func (r *Recorder) Report(now time.Time) lease.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := lease.Report{NotEnforced: map[string]string{}, Used: map[string]int64{}}
	// Processes may be on a device that is not read.
	unread := r.last.Fault != "" || slices.ContainsFunc(r.last.Devices, func(d node.Device) bool { return d.Fault != "" })
	for uid, p := range r.pods {
		if p.NotEnforcing != "" {
			report.NotEnforced[uid] = shorten.Line(p.NotEnforcing, longestReason)
		}
		if bytes, ok := p.used(now); ok && !unread {
			report.Used[uid] = (bytes + mebibyte - 1) / mebibyte
		}
	}
	return report
}

// used returns the pod's use; false: not all of it was read lately.
func (p *Pod) used(now time.Time) (bytes int64, ok bool) {
	if now.Sub(p.Sampled) > lease.Duration {
		return 0, false
	}
	for _, u := range p.Usages {
		if u.Stale(now) {
			return 0, false
		}
		bytes += u.UsedBytes
	}
	return bytes, true
}

// Snapshot returns the present records.
func (r *Recorder) Snapshot() Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Snapshot{Busy: maps.Clone(r.busy), Last: r.last}
	for _, p := range r.pods {
		own := *p
		own.ByteSeconds, own.Warnings, own.Terminations = maps.Clone(p.ByteSeconds), maps.Clone(p.Warnings), maps.Clone(p.Terminations)
		s.Pods = append(s.Pods, own)
	}
	return s
}

// Unmanaged returns the bytes that processes use of a device that are in no
// enforced pod.
func (r *Recorder) Unmanaged(d node.Device) (bytes int64) {
	for _, p := range d.Processes {
		if _, enforced := r.promised(p.Member.PodUID); !enforced {
			bytes += p.UsedBytes
		}
	}
	return bytes
}

// recordUtilization records how busy each container of an enforced pod kept each
// device.
func (r *Recorder) recordUtilization(activities []guard.Activity) {
	r.busy = map[Place]float64{}
	for _, a := range activities {
		for _, f := range a.Utilizations {
			if at, known := r.placeOf(f.Device, f.PID); known {
				r.busy[at] += float64(f.Percent) / 100
			}
		}
	}
}

// placeOf returns the container of a process that the device listed.
func (r *Recorder) placeOf(device string, pid int) (Place, bool) {
	for _, d := range r.last.Devices {
		if d.ID != device {
			continue
		}
		for _, p := range d.Processes {
			if of, enforced := r.promised(p.Member.PodUID); enforced && p.PID == pid {
				return Place{of.Namespace, of.Name, of.ContainerName(p.Member.ContainerID), device}, true
			}
		}
	}
	return Place{}, false
}
