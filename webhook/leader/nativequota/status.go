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
	StateCounted   QuotaState = "counted"   // another's; gpuslice counts the pods that it renamed for it
	StateUncounted QuotaState = "uncounted" // another's; renamed pods are not counted
	StateWritten   QuotaState = "written"   // gpuslice's own
	StateUnwritten QuotaState = "unwritten" // the policy wants one, and there is none
)

// QuotaStatus is the status of a ResourceQuota, or of one that the policy wants.
type QuotaStatus struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Resource  string     `json:"resource,omitempty"`
	State     QuotaState `json:"state"`
	Reason    string     `json:"reason,omitempty"` // if uncounted or unwritten
}

// Statuses returns the status of each ResourceQuota of the governed namespaces, in a stable order.
func (q *Quotas) Statuses(all []governed.Namespace) (out []QuotaStatus) {
	for _, g := range all {
		if g.Policy == nil {
			continue
		}
		for _, n := range q.In(g.Name) {
			out = append(out, statusOfOther(g, n))
		}
		if s, wanted := q.statusOfOwn(g); wanted {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b QuotaStatus) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Resource, b.Resource))
	})
	return out
}

func statusOfOther(g governed.Namespace, n accounting.NativeQuota) QuotaStatus {
	s := QuotaStatus{Namespace: g.Name, Name: n.Name, Resource: n.Resource, State: StateCounted}
	switch {
	case !g.Policy.Quota.CountsNative():
		s.State, s.Reason = StateUncounted, "policy "+g.Policy.Name+" does not count it"
	case n.Uncounted != "":
		s.State, s.Reason = StateUncounted, n.Uncounted
	}
	return s
}

func (q *Quotas) statusOfOwn(g governed.Namespace) (QuotaStatus, bool) {
	want, wanted := accounting.WrittenQuotaOf(g.Policy, g.Pools)
	s := QuotaStatus{Namespace: g.Name, Name: accounting.WrittenQuotaName, Resource: want.Resource, State: StateUnwritten, Reason: want.Why}
	if have := q.ownQuota(g.Name); want.Why == "" && have != nil {
		if s.State = StateWritten; !have.managed() {
			s.State, s.Reason = StateUnwritten, reasonNotManaged
		}
	}
	return s, wanted
}

// reasonNotManaged is why a ResourceQuota is not written whose name is taken.
const reasonNotManaged = "a ResourceQuota of this name was not written by gpuslice: it has no label " +
	accounting.LabelQuota + "; rename it, or set native: check in the policy"

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
		"1 for each ResourceQuota on a GPU resource in a governed namespace: counted, uncounted, written or unwritten. At most 1000.",
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
