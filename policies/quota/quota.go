package quota

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// rule is the rule of denials for want of quota.
const rule api.Rule = "quota"

// Quota limits the total of the pods of one budget: limits, each on a part of the budget.
type Quota struct {
	Limits []Limit
}

// Limit is the most that the pods within a scope may hold at one time.
type Limit struct {
	Name   string // as denials write it: "team-a", "team-a (pool a100)"
	Scope  Scope
	Limits Limits
	Native bool // it is a ResourceQuota's
}

// Scope is a part of a budget; an empty field does not narrow it. The zero Scope is the whole budget.
type Scope struct {
	Namespace string
	Pool      string
	Class     string
	// Resource narrows it to units of one resource, as ResourceQuotas count them. They count as gpus.
	Resource string
	Pods     *podScopes
}

// Holding is the charge to a budget of one pod, or of several pods of one namespace, pools and traits together.
type Holding struct {
	Namespace string `json:"namespace"`
	// Pools are those where the pod may run. Where there are several it counts in each of them.
	Pools  []string `json:"pools,omitempty"`
	Charge Charge   `json:"charge,omitzero"`
	// Classes are the charges of containers that got their slice through a class.
	Classes map[string]Charge `json:"classes,omitempty"`
	// MemoryUnknown reports whether Charge.Memory leaves out devices whose memory is not known.
	MemoryUnknown bool `json:"memoryUnknown,omitempty"`
	// Units are counts for ResourceQuotas, by resource: under the requested names and the carried ones.
	Units  map[string]int64 `json:"units,omitempty"`
	Traits Traits           `json:"traits,omitzero"`
}

// In is the part of h within the scope; the zero Charge if it lies outside.
func (h Holding) In(scope Scope) Charge {
	switch {
	case scope.Namespace != "" && scope.Namespace != h.Namespace,
		scope.Pool != "" && !slices.Contains(h.Pools, scope.Pool),
		!scope.Pods.Match(h.Traits):
		return Charge{}
	case scope.Resource != "":
		return Charge{GPUs: quantity.Sum(h.Units[scope.Resource], h.Units[otherUnits])}
	case scope.Class != "":
		return h.Classes[scope.Class]
	}
	return h.Charge
}

// Plus is the sum of h and g, which are of one namespace, pools and traits. It changes neither.
func (h Holding) Plus(g Holding) Holding {
	h.Charge = h.Charge.Plus(g.Charge)
	h.MemoryUnknown = h.MemoryUnknown || g.MemoryUnknown
	classes := maps.Clone(h.Classes)
	for class, c := range g.Classes {
		if classes == nil {
			classes = make(map[string]Charge)
		}
		classes[class] = classes[class].Plus(c)
	}
	h.Classes, h.Units = classes, plusUnits(h.Units, g.Units)
	return h
}

// Excess is one dimension of one limit that a pod does not fit into.
type Excess struct {
	Quota     string // the limit's name
	Dimension string
	Requested string
	Used      string
	Limited   string
	Left      string
	Native    bool   // the limit is a ResourceQuota's
	Note      string // the remaining amount and the holders of the rest, for people
}

// Excess returns the limits that h exceeds, given the usage within each scope. A dimension in which h requests nothing
// never denies it, whatever is used: lowered limits stop growth, and nothing else.
func (q Quota) Excess(used func(Scope) Charge, h Holding) []Excess {
	var out []Excess
	for _, limit := range q.Limits {
		requested := h.In(limit.Scope)
		if requested == (Charge{}) {
			continue
		}
		have := used(limit.Scope)
		for _, d := range Dimensions() {
			if e, over := limit.exceeded(d, h, requested, have); over {
				out = append(out, e)
			}
		}
	}
	return out
}

func (l Limit) exceeded(d dimension, h Holding, requested, have Charge) (Excess, bool) {
	most, limited := d.Limit(l.Limits)
	amount, used := d.Amount(requested), d.Amount(have)
	unknown := d.Unknown(h)
	if !limited || !unknown && (amount <= 0 || quantity.Sum(used, amount) <= most) {
		return Excess{}, false
	}
	e := Excess{Quota: l.Name, Dimension: l.Scope.dimension(d), Requested: d.Text(amount),
		Used: d.Text(used), Limited: d.Text(most), Left: d.Text(max(most-used, 0)), Native: l.Native}
	if unknown {
		e.Requested = "unknown"
	}
	return e, true
}

// Measure returns the function for a holding's amount in the dimension of the excess, and one for its text.
func (q Quota) Measure(e Excess) (amount func(Holding) int64, text func(int64) string) {
	for _, l := range q.Limits {
		for _, d := range Dimensions() {
			if _, limited := d.Limit(l.Limits); limited && l.Name == e.Quota && l.Scope.dimension(d) == e.Dimension {
				return func(h Holding) int64 { return d.Amount(h.In(l.Scope)) }, d.Text
			}
		}
	}
	return func(Holding) int64 { return 0 }, formatCount
}

// dimension is the name of the dimension within the scope in denials.
func (s Scope) dimension(d dimension) string {
	if s.Resource != "" {
		return corev1.DefaultResourceRequestsPrefix + s.Resource
	}
	return d.Name
}

// Denial is the denial for want of quota, in Kubernetes' own words:
//
//	exceeded quota: team-a, requested: memory=8Gi, used: memory=60Gi, limited: memory=64Gi
//
// It omits quotas that would not be exceeded. No excess, no Violation.
func Denial(excess []Excess) *api.Violation {
	var sentences []string
	for i := 0; i < len(excess); {
		end := i
		for end < len(excess) && excess[end].Quota == excess[i].Quota {
			end++
		}
		sentences = append(sentences, excessSentence(excess[i:end]))
		i = end
	}
	if len(sentences) == 0 {
		return nil
	}
	return &api.Violation{Rule: rule, Reason: "exceeded quota", Detail: strings.Join(sentences, "; ")}
}

// excessSentence describes the denial by one limit.
func excessSentence(excess []Excess) string {
	var requested, used, limited []string
	for _, e := range excess {
		requested = append(requested, e.Dimension+"="+e.Requested)
		used = append(used, e.Dimension+"="+e.Used)
		limited = append(limited, e.Dimension+"="+e.Limited)
	}
	text := excess[0].Quota + ", requested: " + strings.Join(requested, ",") +
		", used: " + strings.Join(used, ",") + ", limited: " + strings.Join(limited, ",")
	if slices.ContainsFunc(excess, func(e Excess) bool { return e.Requested == "unknown" }) {
		text += " (the memory of the device it would hold is not known; write " + api.LabelMemory + ")"
	}
	if note := excess[0].Note; note != "" {
		text += " (" + note + ")"
	}
	return text
}

// Sound reports whether nothing in h is negative or too large for sums.
func (h Holding) Sound() bool {
	for _, c := range h.Classes {
		if !c.Sound() {
			return false
		}
	}
	for _, n := range h.Units {
		if n < 0 || n > quantity.MaxCharge {
			return false
		}
	}
	return h.Charge.Sound()
}

// Limits are the most that may be held of each dimension. nil: no limit. 0: none at all.
type Limits struct {
	Memory *quantity.MiB `json:"memory,omitempty"`
	Slices *int64        `json:"slices,omitempty"`
	GPUs   *int64        `json:"gpus,omitempty"`
	// Devices are GPU equivalents: "2" is eight quarters, or two whole devices.
	Devices *quantity.Devices `json:"devices,omitempty"`
}

// Native reports whether a ResourceQuota is among the limits.
func (q Quota) Native() bool {
	return slices.ContainsFunc(q.Limits, func(l Limit) bool { return l.Native })
}
