package observe

import (
	"cmp"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// series is one series of the metric of observed pods.
type series struct {
	tier  api.Tier
	state State
}

// gauges are the metrics of observed pods and of their guards. They have their series in the replica that observes and none
// in the others, so that replicas may be summed. They are safe for concurrent use.
type gauges struct {
	observed, failing *prometheus.Desc

	mu       sync.Mutex
	on       bool
	pods     map[string]series
	failures guardaccess.Failures // of guards to read the GPUs of a pool
}

func newGauges() *gauges {
	return &gauges{pods: map[string]series{},
		observed: prometheus.NewDesc("gpuslice_observed_pods",
			"Pods with a slice, by the strongest tier observed for all containers, and by state, compared with the planned tier.",
			[]string{"tier", "state"}, nil),
		failing: prometheus.NewDesc("gpuslice_guard_failing_namespaces",
			"Namespaces whose last guards on a pool could not read the GPUs, by access to the driver. From two on, plans for the pool count on no guard.",
			[]string{"pool", "access"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.observed
	out <- g.failing
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.on {
		return
	}
	counts := map[series]int{}
	for _, p := range g.pods {
		counts[p]++
	}
	for _, tier := range api.Tiers() {
		for _, state := range States() {
			n := float64(counts[series{tier, state}])
			out <- prometheus.MustNewConstMetric(g.observed, prometheus.GaugeValue, n, string(tier), string(state))
		}
	}
	for _, f := range g.failures {
		out <- prometheus.MustNewConstMetric(g.failing, prometheus.GaugeValue, float64(len(f.Namespaces)), f.Pool, f.Access)
	}
}

// reset starts or stops counting.
func (g *gauges) reset(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.on, g.pods, g.failures = on, map[string]series{}, nil
}

// set records the observation of a pod.
func (g *gauges) set(key string, o Observation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pods[key] = series{cmp.Or(o.Tier, api.TierNone), o.State}
}

// remove drops a pod from the count.
func (g *gauges) remove(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.pods, key)
}

func (g *gauges) setFailures(failures guardaccess.Failures) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures = failures
}
