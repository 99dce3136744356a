package quotametrics

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/policies"
)

// Bounds on the series: names of namespaces are made by whoever may make them.
const (
	maxFigures    = 5000 // limits that are told, three series each
	maxNamespaces = 2000
)

// collector is the metrics of Accounts.
type collector struct {
	exporter                             *Exporter
	limit, used, reserved                *prometheus.Desc
	charge, memoryByteSeconds, unmanaged *prometheus.Desc
}

func newCollector(a *Exporter) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gpuslice_"+name, help, labels, nil)
	}
	of := []string{"budget", "part", "dimension"}
	return &collector{exporter: a,
		limit: desc("quota_limit", "What a budget may hold: budget is namespace/NAME or shared/NAME, part is empty for all of it, or pool/NAME or class/NAME. "+
			"Memory is in bytes. Told by the replica that leads; at most 5000.", of...),
		used:     desc("quota_used", "What living pods hold of a limit, as they were last listed.", of...),
		reserved: desc("quota_reserved", "What is promised of a limit to pods that were let in and are not listed yet.", of...),
		charge:   desc("held", "What the living pods of a namespace with a quota hold; memory in bytes. At most 2000 namespaces are told.", "namespace", "dimension"),
		memoryByteSeconds: desc("held_memory_byte_seconds_total", "GPU memory that the living pods of a namespace with a quota have held, in bytes times seconds: for chargeback by what was given, whatever was used. "+
			"It begins at 0 with each replica that comes to lead, which increase() allows for.", "namespace"),
		unmanaged: desc("unpromised_pods", "Living pods of a namespace that were created while gpuslice was not asked and should have a slice; they count as whole devices.", "namespace"),
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
		for desc, n := range map[*prometheus.Desc]int64{c.limit: f.Limit, c.used: f.Used, c.reserved: f.Reserved} {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), f.budget, f.Part, f.Dimension)
		}
	}
	now := time.Now()
	_, namespaces := c.exporter.recorder.read()
	for i, name := range slices.Sorted(maps.Keys(namespaces)) {
		if i == maxNamespaces {
			break
		}
		a := namespaces[name]
		for _, d := range policies.Dimensions() {
			out <- prometheus.MustNewConstMetric(c.charge, prometheus.GaugeValue, float64(d.Amount(a.charge)*d.Unit), name, d.Name)
		}
		out <- prometheus.MustNewConstMetric(c.memoryByteSeconds, prometheus.CounterValue, a.byteSecondsAt(now), name)
		out <- prometheus.MustNewConstMetric(c.unmanaged, prometheus.GaugeValue, float64(a.unmanaged), name)
	}
}

// figure is a Figure under the name of its budget.
type figure struct {
	budget string
	policies.Figure
}

// figures are those of all budgets that were reported, in a stable order. What a tenant's own document limits of a shared
// budget stands under its namespace; where it limits the same as policy does, the smaller limit is told.
func (c *collector) figures() []figure {
	states, _ := c.exporter.recorder.read()
	all := map[figure]policies.Figure{}
	for key, quota := range c.exporter.options.Quotas() {
		state, reported := states[key]
		if !reported {
			continue
		}
		for _, f := range state.Figures(quota) {
			as := figure{key, policies.Figure{Part: f.Part, Dimension: f.Dimension}}
			if f.Namespace != "" {
				as.budget = policies.BudgetKey(f.Namespace, policies.QuotaSpec{})
			}
			if known, ok := all[as]; !ok || f.Limit < known.Limit {
				all[as] = f
			}
		}
	}
	out := make([]figure, 0, len(all))
	for as, f := range all {
		out = append(out, figure{as.budget, f})
	}
	slices.SortFunc(out, func(a, b figure) int {
		return cmp.Or(cmp.Compare(a.budget, b.budget), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Dimension, b.Dimension))
	})
	return out[:min(len(out), maxFigures)]
}
