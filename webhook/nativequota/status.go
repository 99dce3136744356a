package nativequota

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/policies"
)

// Standing is how a ResourceQuota on a GPU resource stands to gpuslice.
type QuotaState string

// The standings.
const (
	StateCounted   QuotaState = "counted"   // another's, and gpuslice counts for it the pods that it renamed
	StateUncounted QuotaState = "uncounted" // another's, and pods that were renamed are not counted
	StateWritten   QuotaState = "written"   // gpuslice's own
	StateMissing   QuotaState = "unwritten" // policy wants one, and it is not there
)

// State says of one ResourceQuota, or of one that should be there, how it stands.
type QuotaStatus struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Resource  string     `json:"resource,omitempty"`
	State     QuotaState `json:"state"`
	Reason    string     `json:"why,omitempty"` // of uncounted and unwritten
}

// Governed is a namespace that a policy governs.
type Governed struct {
	Namespace string
	Policy    *policies.Policy // nil: it cannot be read, and nothing is to change meanwhile
	Pools     []policies.Pool
}

// States tells how the ResourceQuotas of the governed namespaces stand, in a stable order.
func (q *Quotas) Statuses(governed []Governed) (out []QuotaStatus) {
	for _, g := range governed {
		if g.Policy == nil {
			continue
		}
		for _, n := range q.In(g.Namespace) {
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

func statusOfOther(g Governed, n policies.NativeQuota) QuotaStatus {
	s := QuotaStatus{Namespace: g.Namespace, Name: n.Name, Resource: n.Resource, State: StateCounted}
	switch {
	case g.Policy.Quota.Native == policies.NativeOff:
		s.State, s.Reason = StateUncounted, "policy "+g.Policy.Name+" has it not counted"
	case n.Uncounted != "":
		s.State, s.Reason = StateUncounted, n.Uncounted
	}
	return s
}

func (q *Quotas) statusOfOwn(g Governed) (QuotaStatus, bool) {
	want, wanted := g.Policy.WrittenQuota(g.Pools)
	s := QuotaStatus{Namespace: g.Namespace, Name: policies.WrittenQuotaName, Resource: want.Resource, State: StateMissing, Reason: want.Why}
	if have := q.ownQuota(g.Namespace); want.Why == "" && have != nil {
		if s.State = StateWritten; !have.managed() {
			s.State, s.Reason = StateMissing, reasonNotManaged
		}
	}
	return s, wanted
}

// foreign is why a quota is not written whose name is taken.
const reasonNotManaged = "a ResourceQuota of this name is somebody else's: it has no label " + policies.LabelQuota + "; rename it, or let policy say native: check"

// maxSeries bounds the metric. Whoever has more ResourceQuotas on GPUs finds them all under /state.
const maxSeries = 1000

// collector is the metric of the states.
type collector struct {
	desc   *prometheus.Desc
	states func() []QuotaStatus
}

// Watch registers the metric gpuslice_native_quota, which tells of the states.
func RegisterMetrics(registerer prometheus.Registerer, states func() []QuotaStatus) error {
	return registerer.Register(&collector{states: states, desc: prometheus.NewDesc("gpuslice_native_quota",
		"1 for each ResourceQuota on a GPU resource in a governed namespace: counted (gpuslice counts renamed pods for it), uncounted, written (gpuslice's own) or unwritten. At most 1000 are told.",
		[]string{"namespace", "name", "resource", "state"}, nil)})
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	states := c.states()
	for _, s := range states[:min(len(states), maxSeries)] {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, 1, s.Namespace, s.Name, s.Resource, string(s.State))
	}
}
