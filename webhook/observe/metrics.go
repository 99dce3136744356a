package observe

import (
	"cmp"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/policies/api"
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
		"Pods with a slice, by the strongest tier observed for all their containers, and by state, compared with the planned tier.",
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

func (c *podCounter) start() { c.reset(true) }

func (c *podCounter) stop() { c.reset(false) }

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
