package nativequota

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/webhook/governed"
)

// QuotaState is the relation of a ResourceQuota on a GPU resource to gpuslice.
type QuotaState string

// The states.
const (
	StateCounted   QuotaState = "counted"   // gpuslice counts the pods that it renamed for it
	StateUncounted QuotaState = "uncounted" // renamed pods are not counted
)

// QuotaStatus is the status of a ResourceQuota.
type QuotaStatus struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Resource  string     `json:"resource,omitempty"`
	State     QuotaState `json:"state"`
	Reason    string     `json:"reason,omitempty"` // if uncounted
}

// Statuses returns the status of each ResourceQuota of the governed namespaces, in a stable order.
func (q *Quotas) Statuses(all []governed.Namespace) (out []QuotaStatus) {
	for _, g := range all {
		if g.Policy == nil {
			continue
		}
		for _, n := range q.In(g.Name) {
			out = append(out, statusOf(g, n))
		}
	}
	slices.SortFunc(out, func(a, b QuotaStatus) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Resource, b.Resource))
	})
	return out
}

func statusOf(g governed.Namespace, n accounting.NativeQuota) QuotaStatus {
	s := QuotaStatus{Namespace: g.Name, Name: n.Name, Resource: n.Resource, State: StateCounted}
	switch {
	case !g.Policy.Quota.CountsNative():
		s.State, s.Reason = StateUncounted, "policy "+g.Policy.Name+" does not count it"
	case n.Uncounted != "":
		s.State, s.Reason = StateUncounted, n.Uncounted
	}
	return s
}

// maxSeries bounds the metric. The endpoint /state lists all ResourceQuotas.
const maxSeries = 1000

// collector collects the metric of the statuses.
type collector struct {
	desc     *prometheus.Desc
	statuses func() []QuotaStatus
}

// RegisterMetrics registers the metric gpuslice_native_quota_info.
func RegisterMetrics(registerer prometheus.Registerer, statuses func() []QuotaStatus) error {
	return registerer.Register(&collector{statuses: statuses, desc: prometheus.NewDesc("gpuslice_native_quota_info",
		"1 for each ResourceQuota on a GPU resource in a governed namespace: counted or uncounted. At most 1000.",
		[]string{"namespace", "name", "resource", "state"}, nil)})
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	statuses := c.statuses()
	for _, s := range statuses[:min(len(statuses), maxSeries)] {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, 1, s.Namespace, s.Name, s.Resource, string(s.State))
	}
}
