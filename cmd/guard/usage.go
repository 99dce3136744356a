package main

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// place is a container on a device, as metrics label it.
type place struct{ container, device string }

// usage is what metrics say. It is safe for concurrent use.
type usage struct {
	limits limits.Limits
	busy   func(context.Context) []gpu.Utilization

	mu          sync.Mutex
	last        time.Time
	watches     []guard.Watch
	processes   map[string]map[int]string // device -> PID -> container
	devices     map[string]int64          // bytes of each that says
	byteSeconds map[place]float64
	warnings    map[string]int
	ends        map[[2]string]int // container, result
	blind       bool
	blindTime   time.Duration
	looks       prometheus.Histogram
}

func newUsage(l limits.Limits, busy func(context.Context) []gpu.Utilization) *usage {
	return &usage{limits: l, busy: busy, processes: map[string]map[int]string{}, byteSeconds: map[place]float64{}, devices: map[string]int64{},
		warnings: map[string]int{}, ends: map[[2]string]int{},
		looks: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gpuslice_guard_look_seconds",
			Help:    "How long one look at all devices took.",
			Buckets: []float64{.0001, .001, .005, .01, .05, .1, .5, 1, 2}}),
	}
}

// took notes how long a look lasted.
func (u *usage) took(d time.Duration) { u.looks.Observe(d.Seconds()) }

// count counts an action.
func (u *usage) count(a guard.Action) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch a.Kind {
	case guard.Warn:
		u.warnings[a.Container]++
	case guard.Report:
		u.ends[[2]string{a.Container, string(a.Outcome.Result)}]++
	}
}

// saw adds what was held since the last look: what it was then, until now.
func (u *usage) saw(sample guard.Sample, s guard.State) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.last.IsZero() {
		since := sample.Taken.Sub(u.last)
		for _, w := range u.watches {
			u.byteSeconds[place{w.Container, w.Device}] += float64(w.HeldBytes) * since.Seconds()
		}
		if u.blind {
			u.blindTime += since
		}
	}
	u.last, u.blind, u.watches = sample.Taken, s.Blind() != "", s.Watches
	for _, d := range sample.Devices {
		names := map[int]string{}
		for _, p := range d.Processes {
			names[p.PID] = p.Container
		}
		u.processes[d.ID] = names
		if d.TotalBytes > 0 {
			u.devices[d.ID] = d.TotalBytes
		}
	}
}

// utilization is how busy each container kept each device.
func (u *usage) utilization(ctx context.Context) map[place]int {
	found := u.busy(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	percent := map[place]int{}
	for _, f := range found {
		if container := u.processes[f.Device][f.PID]; container != "" {
			percent[place{container, f.Device}] += f.Percent
		}
	}
	return percent
}
