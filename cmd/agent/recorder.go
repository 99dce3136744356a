package main

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/webhook/nodelease"
)

// recorder records what the metrics show. It is safe for concurrent use.
type recorder struct {
	promised func(uid string) (node.Pod, bool)
	samples  prometheus.Histogram

	mu   sync.Mutex
	pods map[string]*podRecord // by UID
	busy map[place]float64     // utilization
	last node.Sample
}

// longestReason keeps the reasons for a node's pods within what a Lease can hold.
const longestReason = 200

// podRecord is what is shown of one pod.
type podRecord struct {
	pod          node.Pod
	usages       []guard.Usage
	taken        time.Time             // when usages were sampled
	byteSeconds  map[[2]string]float64 // by container and device
	warnings     map[string]int        // by container
	terminations map[[2]string]int     // by container and result
	notEnforcing string                // why its slice is not enforced; empty: it is
	notHeld      string                // what was reported first of what the pod may use beyond its slices
	readUse      time.Time             // when it was read last what ran
	quiet        map[string]*quietness // by container
}

func newRecorder(promised func(uid string) (node.Pod, bool)) *recorder {
	return &recorder{promised: promised, pods: map[string]*podRecord{},
		samples: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gpuslice_agent_sample_duration_seconds",
			Help:    "Time that one reading of all devices took.",
			Buckets: []float64{.0001, .001, .005, .01, .05, .1, .5, 1, 2}}),
	}
}

func (r *recorder) add(p node.Pod) *podRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	added := &podRecord{pod: p, warnings: map[string]int{}, terminations: map[[2]string]int{}, byteSeconds: map[[2]string]float64{},
		quiet: map[string]*quietness{}}
	r.pods[p.UID] = added
	return added
}

func (r *recorder) remove(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, uid)
}

// count counts an event.
func (r *recorder) count(p *podRecord, e guard.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Kind {
	case guard.NearLimit:
		p.warnings[e.Container]++
	case guard.TerminationResult:
		p.terminations[[2]string{e.Container, string(e.Outcome.Result)}]++
	}
}

// observe adds what was used since the last sample: what it was then, until now.
func (r *recorder) observe(p *podRecord, taken time.Time, s guard.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range p.usages {
		p.byteSeconds[[2]string{u.Container, u.Device}] += float64(u.UsedBytes) * taken.Sub(p.taken).Seconds()
	}
	notHeld := s.NotHeld()
	if notHeld != "" { // its figures change with each sample: the first report stays for as long as there is one
		notHeld = cmp.Or(p.notHeld, notHeld)
	}
	p.usages, p.taken, p.notHeld, p.notEnforcing = s.Usages, taken, notHeld, cmp.Or(s.NotEnforcing(), notHeld)
}

// sampled records a sample, and returns the limits of the pods that it is for.
func (r *recorder) sampled(s node.Sample) (pods []limits.Limits) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = s
	for _, p := range r.pods {
		pods = append(pods, p.pod.Limits)
	}
	return pods
}

// notEnforced returns why slices are not enforced, by the UID of the pod.
func (r *recorder) notEnforced() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	reasons := map[string]string{}
	for uid, p := range r.pods {
		if p.notEnforcing != "" {
			reasons[uid] = p.notEnforcing[:min(len(p.notEnforcing), longestReason)]
		}
	}
	return reasons
}

// used returns the GPU memory that pods use, in MiB, by UID: of those of which all of it was read lately.
func (r *recorder) used(now time.Time) map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]int64{}
	if r.last.Fault != "" || slices.ContainsFunc(r.last.Devices, func(d node.Device) bool { return d.Fault != "" }) {
		return all // processes may be on a device that is not read
	}
	for uid, p := range r.pods {
		if bytes, ok := p.used(now); ok {
			all[uid] = (bytes + mebibyte - 1) / mebibyte
		}
	}
	return all
}

const mebibyte = 1 << 20

// used returns what the pod uses; false: not all of it was read lately.
func (p *podRecord) used(now time.Time) (bytes int64, ok bool) {
	if now.Sub(p.taken) > nodelease.Duration {
		return 0, false
	}
	for _, u := range p.usages {
		if u.Stale(now) {
			return 0, false
		}
		bytes += u.UsedBytes
	}
	return bytes, true
}

// sampledAt returns when the devices were read last, and whether they could be.
func (r *recorder) sampledAt() (at time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.Taken, r.last.Fault == ""
}

// place is a container on a device, as metrics label it.
type place struct{ namespace, pod, container, device string }

// recordUtilization records how busy each container of an enforced pod kept each
// device, 1 for all of it.
func (r *recorder) recordUtilization(activities []gpu.Activity) {
	r.busy = map[place]float64{}
	for _, a := range activities {
		for _, f := range a.Utilizations {
			if at, known := r.placeOf(f.Device, f.PID); known {
				r.busy[at] += float64(f.Percent) / 100
			}
		}
	}
}

// placeOf returns the container of a process that the device listed.
func (r *recorder) placeOf(device string, pid int) (place, bool) {
	for _, d := range r.last.Devices {
		if d.ID != device {
			continue
		}
		for _, p := range d.Processes {
			if of, enforced := r.promised(p.Member.PodUID); enforced && p.PID == pid {
				return place{of.Namespace, of.Name, of.ContainerName(p.Member.ContainerID), device}, true
			}
		}
	}
	return place{}, false
}

// unmanaged returns what processes use of a device that are in no enforced pod.
func (r *recorder) unmanaged(d node.Device) int64 {
	var bytes int64
	for _, p := range d.Processes {
		if _, enforced := r.promised(p.Member.PodUID); !enforced {
			bytes += p.UsedBytes
		}
	}
	return bytes
}
