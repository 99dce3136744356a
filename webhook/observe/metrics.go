package observe

import (
	"cmp"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/policies"
)

// cell is one series of the metric.
type series struct {
	tier  policies.Tier
	state State
}

// tally counts the pods observed. It is a metric with all its series in the replica that observes, and with none in the
// others, so that replicas may be summed. It is safe for concurrent use.
type podCounter struct {
	desc *prometheus.Desc

	mu   sync.Mutex
	on   bool
	pods map[string]series
}

func newPodCounter() *podCounter {
	return &podCounter{pods: map[string]series{}, desc: prometheus.NewDesc("gpuslice_pod_enforcement",
		"Pods with a slice, by the strongest tier observed to hold for all their containers, and by how that compares with what was planned.",
		[]string{"tier", "state"}, nil)}
}

// Describe implements prometheus.Collector.
func (t *podCounter) Describe(out chan<- *prometheus.Desc) { out <- t.desc }

// Collect implements prometheus.Collector.
func (t *podCounter) Collect(out chan<- prometheus.Metric) {
	counts, on := t.counts()
	if !on {
		return
	}
	for _, tier := range policies.Tiers() {
		for _, state := range States() {
			n := float64(counts[series{tier, state}])
			out <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, n, string(tier), string(state))
		}
	}
}

func (t *podCounter) counts() (map[series]int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := map[series]int{}
	for _, c := range t.pods {
		counts[c]++
	}
	return counts, t.on
}

func (t *podCounter) start() { t.reset(true) }

func (t *podCounter) stop() { t.reset(false) }

func (t *podCounter) reset(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on, t.pods = on, map[string]series{}
}

// count notes what was observed of a pod.
func (t *podCounter) set(key string, o Observation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pods[key] = series{cmp.Or(o.Tier, policies.TierNone), o.State}
}

// forget takes a pod out of the count.
func (t *podCounter) remove(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pods, key)
}
