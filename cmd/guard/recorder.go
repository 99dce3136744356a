package main

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// place is a container on a device, as metrics label it.
type place struct{ container, device string }

// recorder records the metrics. It is safe for concurrent use.
type recorder struct {
	limits limits.Limits
	busy   func(context.Context) []guard.Utilization

	mu               sync.Mutex
	last             time.Time
	usages           []guard.Usage
	processes        map[string]map[int]string // device -> PID -> container
	devices          map[string]guard.Device   // model and bytes of each that reports them
	byteSeconds      map[place]float64
	warnings         map[string]int
	terminations     map[[2]string]int // container, result
	notEnforcing     bool
	notEnforcingTime time.Duration
	samples          prometheus.Histogram
}

func newRecorder(l limits.Limits, busy func(context.Context) []guard.Utilization) *recorder {
	return &recorder{limits: l, busy: busy, processes: map[string]map[int]string{},
		byteSeconds: map[place]float64{}, devices: map[string]guard.Device{},
		warnings: map[string]int{}, terminations: map[[2]string]int{},
		samples: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gpuslice_guard_sample_duration_seconds",
			Help:    "Time that one sample of all devices took.",
			Buckets: []float64{.0001, .001, .005, .01, .05, .1, .5, 1, 2}}),
	}
}

// observeDuration records how long a sample took.
func (r *recorder) observeDuration(d time.Duration) { r.samples.Observe(d.Seconds()) }

// count counts an event.
func (r *recorder) count(e guard.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Kind {
	case guard.NearLimit:
		r.warnings[e.Container]++
	case guard.TerminationResult:
		r.terminations[[2]string{e.Container, string(e.Outcome.Result)}]++
	}
}

// record adds the use since the last sample: the use at that sample, until now.
func (r *recorder) record(sample guard.Sample, s guard.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last.IsZero() {
		since := sample.Taken.Sub(r.last)
		for _, u := range r.usages {
			r.byteSeconds[place{u.Container, u.Device}] += float64(u.UsedBytes) * since.Seconds()
		}
		if r.notEnforcing {
			r.notEnforcingTime += since
		}
	}
	r.last, r.notEnforcing, r.usages = sample.Taken, s.NotEnforcing() != "", s.Usages
	for _, d := range sample.Devices {
		names := map[int]string{}
		for _, p := range d.Processes {
			names[p.PID] = p.Container
		}
		r.processes[d.ID] = names
		if d.TotalBytes > 0 {
			r.devices[d.ID] = guard.Device{Model: d.Model, TotalBytes: d.TotalBytes}
		}
	}
}

// utilization returns how busy each container kept each device, 1 for all of it.
func (r *recorder) utilization(ctx context.Context) map[place]float64 {
	found := r.busy(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	percent := map[place]int{}
	for _, f := range found {
		if container := r.processes[f.Device][f.PID]; container != "" {
			percent[place{container, f.Device}] += f.Percent
		}
	}
	ratio := map[place]float64{}
	for at, p := range percent {
		ratio[at] = float64(p) / 100
	}
	return ratio
}
