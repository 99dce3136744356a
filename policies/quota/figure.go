package quota

import (
	"math"
	"slices"
)

// Figure is the state of one dimension of one limit, in bytes where the dimension is memory.
type Figure struct {
	Quota     string  `json:"quota"`               // the limit's name, as denials write it
	Namespace string  `json:"namespace,omitempty"` // the limit is on its part of the budget; "": on all of it
	Part      string  `json:"part,omitempty"`      // of the budget, see Scope.Part
	Dimension string  `json:"dimension"`
	Limit     float64 `json:"limit"`
	Used      float64 `json:"used"`     // held by pods that live
	Reserved  float64 `json:"reserved"` // promised to pods that were let in and are not listed yet
}

// Figures lists the usage of each limit of a quota, in their order. used is the total of living pods within a scope,
// taken that total with reservations.
func (q Quota) Figures(used, taken func(Scope) Charge) (out []Figure) {
	for _, l := range q.Limits {
		have, all := used(l.Scope), taken(l.Scope)
		for _, d := range Dimensions() {
			most, limited := d.Limit(l.Limits)
			if !limited {
				continue
			}
			n := d.Amount(have)
			out = append(out, Figure{
				Quota: l.Name, Namespace: l.Scope.Namespace, Part: l.Scope.Part(), Dimension: l.Scope.dimension(d),
				Limit: d.Plain(most), Used: d.Plain(n), Reserved: d.Plain(max(d.Amount(all)-n, 0)),
			})
		}
	}
	return out
}

// Part is the part of its budget that the scope selects, as metrics name it: "pool/NAME", "class/NAME", "" for all of
// it.
func (s Scope) Part() string {
	switch {
	case s.Pool != "":
		return "pool/" + s.Pool
	case s.Class != "":
		return "class/" + s.Class
	}
	return ""
}

// Within is the part of the quota that a pod counts in.
func (q Quota) Within(h Holding) Quota {
	return Quota{Limits: slices.DeleteFunc(slices.Clone(q.Limits), func(l Limit) bool { return h.In(l.Scope) == Charge{} })}
}

// Text prints an amount of the figure's dimension for people.
func (f Figure) Text(amount float64) string {
	for _, d := range Dimensions() {
		if d.Name == f.Dimension {
			return d.Text(int64(math.Round(amount * float64(d.Parts) / float64(d.Unit))))
		}
	}
	return formatCount(int64(amount))
}

// Full reports whether no room is left.
func (f Figure) Full() bool {
	const rounding = 1e-9 // far less than one of any dimension
	return f.Used+f.Reserved >= f.Limit-rounding
}
