package main

import (
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
)

// longestUseGap is how far apart two readings may be: beyond it the driver may have
// forgotten what ran.
const longestUseGap = 3 * usePeriod

// useReading is what ran on the devices since the last reading, and who was listed.
type useReading struct {
	at         time.Time
	sample     node.Sample
	activities []gpu.Activity
	tenant     func(uid string) bool // the pod has a promise
}

// quietness is how long nothing has run in one container's slice.
type quietness struct {
	since time.Time             // nothing ran since then; zero: something did, or may have
	still time.Time             // nor did anything that the driver cannot tell from nothing
	told  time.Time             // when its owner last got an Event
	due   bool                  // its processes are to be terminated
	uses  map[useOfMemory]int64 // bytes, at the last reading
}

// useOfMemory is a process on a device.
type useOfMemory struct {
	device string
	pid    int
	start  uint64
}

// record takes in a reading after which nothing has run since the one before it. It
// returns whether the owner is to get an Event. Processes are terminated only after one
// that is no older than the time for which they are.
func (q *quietness) record(before, now time.Time, still bool, l limits.Limits) (tell bool) {
	if q.since.IsZero() {
		q.since = before
	}
	switch {
	case !still:
		q.still = time.Time{}
	case q.still.IsZero():
		q.still = before
	}
	terminates := l.IdleTerminate > 0 && still
	stale := q.told.Before(q.still)
	q.due = terminates && !stale && now.Sub(q.still) >= l.IdleTerminate
	if notice := l.IdleNotice(); notice > 0 {
		tell = q.told.IsZero() && now.Sub(q.since) >= notice || terminates && stale && now.Sub(q.still) >= notice
	}
	if tell {
		q.told = now
	}
	return tell
}

// restless forgets how long nothing ran.
func (q *quietness) restless() { *q = quietness{uses: q.uses} }

// changed takes in what a container's processes use, and reports whether one has
// come, or uses something else: who loads a model runs nothing yet.
func (q *quietness) changed(uses map[useOfMemory]int64) bool {
	before := q.uses
	q.uses = uses
	for use, bytes := range uses {
		if was, known := before[use]; !known || was != bytes {
			return true
		}
	}
	return false
}

// usesOf returns what the processes of a container use, and those of the pod that
// may be in it.
func usesOf(p node.Pod, container string, sample node.Sample) map[useOfMemory]int64 {
	uses := map[useOfMemory]int64{}
	for _, d := range sample.Devices {
		for _, process := range d.Processes {
			if mayBeIn(p, container, process) {
				uses[useOfMemory{d.ID, process.PID, process.Start}] = process.UsedBytes
			}
		}
	}
	return uses
}

// mayHaveRun reports whether the driver has seen a process of a container of which
// it cannot say that it ran: less than a percent, or a client of an MPS server that
// is listed as an ordinary process.
func (u useReading) mayHaveRun(p node.Pod, container string) bool {
	for _, d := range u.sample.Devices {
		for _, process := range d.Processes {
			if mayBeIn(p, container, process) && (u.servedOn(d) || u.activity(d.ID).Sampled[process.PID]) {
				return true
			}
		}
	}
	return false
}

// servedOn reports whether a device lists an MPS server of the node: what its
// clients run is reported as the server's.
func (u useReading) servedOn(d node.Device) bool {
	for _, process := range d.Processes {
		if node.IsMPSServer(process.Command) && !u.tenant(process.Member.PodUID) {
			return true
		}
	}
	return false
}

// activity returns what ran on a device; the zero one: it is not known.
func (u useReading) activity(device string) gpu.Activity {
	for _, a := range u.activities {
		if a.Device == device {
			return a
		}
	}
	return gpu.Activity{}
}

// due returns the containers of a pod whose processes are to be terminated.
func (r *recorder) due(uid string) (idle []guard.Idle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record := r.pods[uid]
	if record == nil {
		return nil
	}
	for name, q := range record.quiet {
		if q.due {
			idle = append(idle, guard.Idle{Container: name, Since: q.still, For: record.readUse.Sub(q.still)})
		}
	}
	return idle
}
