package quotametrics

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// Bounds on the series: whoever may create namespaces chooses their names.
const (
	maxFigures    = 5000 // limits, of three series each
	maxNamespaces = 2000
)

// collector collects the metrics of an Exporter.
type collector struct {
	exporter                             *Exporter
	limit, used, reserved                *prometheus.Desc
	charge, memoryByteSeconds, unmanaged *prometheus.Desc
}

func newCollector(e *Exporter) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gpuslice_"+name, help, labels, nil)
	}
	labels := []string{"budget", "part", "dimension"}
	return &collector{exporter: e,
		limit: desc("quota_limit", "Limit of a budget, namespace/NAME or shared/NAME; part is empty, pool/NAME or class/NAME. "+
			"Memory is in bytes. Exported by the leader; at most 5000.", labels...),
		used:     desc("quota_used", "Charge of living pods against a limit, as last counted.", labels...),
		reserved: desc("quota_reserved", "Reservations of admitted pods that are not counted yet.", labels...),
		charge: desc("namespace_charge", "Charge of the living pods of a namespace with a quota; memory in bytes. At most 2000 namespaces.",
			"namespace", "dimension"),
		memoryByteSeconds: desc("namespace_charged_memory_byte_seconds_total",
			"GPU memory charged to the pods of a namespace with a quota, times seconds. "+
				"It starts at 0 with each new leader.", "namespace"),
		unmanaged: desc("unmanaged_pods", "Living pods without a slice, created without a review; they count as whole devices.", "namespace"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.limit, c.used, c.reserved, c.charge, c.memoryByteSeconds, c.unmanaged} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.exporter.recorder.prune(c.exporter.options.Budgets())
	for _, f := range c.figures() {
		for desc, n := range map[*prometheus.Desc]float64{c.limit: f.Limit, c.used: f.Used, c.reserved: f.Reserved} {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n, f.budget, f.Part, f.Dimension)
		}
	}
	now := time.Now()
	_, namespaces := c.exporter.recorder.read()
	names := slices.Sorted(maps.Keys(namespaces))
	for _, name := range names[:min(len(names), maxNamespaces)] {
		n := namespaces[name]
		for _, d := range quota.Dimensions() {
			out <- prometheus.MustNewConstMetric(c.charge, prometheus.GaugeValue, d.Plain(d.Amount(n.charge)), name, d.Name)
		}
		out <- prometheus.MustNewConstMetric(c.memoryByteSeconds, prometheus.CounterValue, n.byteSecondsAt(now), name)
		out <- prometheus.MustNewConstMetric(c.unmanaged, prometheus.GaugeValue, float64(n.unmanaged), name)
	}
}

// figure is a Figure with the name of its budget.
type figure struct {
	budget string
	quota.Figure
}

// figures returns the figures of all reported budgets, in a stable order. A tenant's own limit in a shared budget is listed
// under the tenant's namespace; where it limits the same as the policy does, the smaller limit is listed.
func (c *collector) figures() []figure {
	states, _ := c.exporter.recorder.read()
	all := map[figure]quota.Figure{}
	for key, limited := range c.exporter.options.Quotas() {
		state, reported := states[key]
		if !reported {
			continue
		}
		for _, f := range state.Figures(limited) {
			id := figure{key, quota.Figure{Part: f.Part, Dimension: f.Dimension}}
			if f.Namespace != "" {
				id.budget = config.QuotaSpec{}.BudgetKey(f.Namespace)
			}
			if other, ok := all[id]; !ok || f.Limit < other.Limit {
				all[id] = f
			}
		}
	}
	out := make([]figure, 0, len(all))
	for id, f := range all {
		out = append(out, figure{id.budget, f})
	}
	slices.SortFunc(out, func(a, b figure) int {
		return cmp.Or(cmp.Compare(a.budget, b.budget), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Dimension, b.Dimension))
	})
	return out[:min(len(out), maxFigures)]
}
