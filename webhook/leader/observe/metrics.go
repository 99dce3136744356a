package observe

import (
	"cmp"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// series is one series of the metric.
type series struct {
	tier  api.Tier
	state State
}

// podCounter counts observed pods. It has all its series in the replica that observes and none in the others, so that
// replicas may be summed. It is safe for concurrent use.
type podCounter struct {
	desc *prometheus.Desc

	mu   sync.Mutex
	on   bool
	pods map[string]series
}

func newPodCounter() *podCounter {
	return &podCounter{pods: map[string]series{}, desc: prometheus.NewDesc("gpuslice_observed_pods",
		"Pods with a slice, by the strongest tier observed for all containers, and by state, compared with the planned tier.",
		[]string{"tier", "state"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *podCounter) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector.
func (c *podCounter) Collect(out chan<- prometheus.Metric) {
	counts, on := c.counts()
	if !on {
		return
	}
	for _, tier := range api.Tiers() {
		for _, state := range States() {
			n := float64(counts[series{tier, state}])
			out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, n, string(tier), string(state))
		}
	}
}

func (c *podCounter) counts() (map[series]int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[series]int{}
	for _, p := range c.pods {
		counts[p]++
	}
	return counts, c.on
}

// reset begins or ends to count.
func (c *podCounter) reset(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on, c.pods = on, map[string]series{}
}

// set records the observation of a pod.
func (c *podCounter) set(key string, o Observation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods[key] = series{cmp.Or(o.Tier, api.TierNone), o.State}
}

// remove drops a pod from the count.
func (c *podCounter) remove(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pods, key)
}

// guardGauge counts the namespaces whose guards could not read the GPUs of a pool. Only the replica that observes has it.
type guardGauge struct {
	desc *prometheus.Desc

	mu       sync.Mutex
	failures guardaccess.Failures
}

func newGuardGauge() *guardGauge {
	return &guardGauge{desc: prometheus.NewDesc("gpuslice_guard_failing_namespaces",
		"Namespaces whose last guards on a pool could not read the GPUs, by access to the driver. From two on, plans for the pool count on no guard.",
		[]string{"pool", "access"}, nil)}
}

// Describe implements prometheus.Collector.
func (g *guardGauge) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements prometheus.Collector.
func (g *guardGauge) Collect(out chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.failures {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(len(f.Namespaces)), f.Pool, f.Access)
	}
}

func (g *guardGauge) set(failures guardaccess.Failures) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures = failures
}
