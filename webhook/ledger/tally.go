package ledger

import (
	"maps"
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/policies"
)

// Tally adds reservations to a copy of a State one by one, without adding up all of it each time.
type Tally struct {
	state State
	index map[string]int // pod UID to its place among the reservations
	sums  map[policies.QuotaScope]*sum
}

// podName is what at most one living pod can be called.
type podName struct{ namespace, name string }

// sum is what is used within one scope.
type sum struct {
	base     policies.Charge
	reserved map[podName]policies.Charge
	total    policies.Charge
}

// NewTally begins with s, which stays as it is.
func NewTally(s State) *Tally {
	s.Reservations = slices.Clone(s.Reservations)
	t := &Tally{state: s, index: make(map[string]int, len(s.Reservations)), sums: make(map[policies.QuotaScope]*sum)}
	for i, r := range s.Reservations {
		t.index[r.PodUID] = i
	}
	return t
}

// State is what the ledger says with all that was reserved.
func (t *Tally) State() State { return t.state }

// Has says that the very same is reserved already: the same review was sent twice.
func (t *Tally) Has(r Reservation) bool {
	i, ok := t.index[r.PodUID]
	if !ok {
		return false
	}
	have := t.state.Reservations[i]
	return have.Name == r.Name && have.Holding.Namespace == r.Holding.Namespace && have.Holding.Charge == r.Holding.Charge &&
		maps.Equal(have.Holding.Units, r.Holding.Units) && have.Holding.Traits == r.Holding.Traits
}

// Excess says where r does not fit beside what others use. Reservations of r's own name are no others: where r's pod
// can be created, theirs cannot be.
func (t *Tally) Excess(q policies.Quota, r Reservation) []policies.Excess {
	used := func(scope policies.QuotaScope) policies.Charge { return t.usedExcept(scope, r.name()) }
	return policies.Fit(q, used, r.Holding)
}

// Reserve adds r. What was reserved before is never taken away here, not even by another review for the same pod.
func (t *Tally) Reserve(r Reservation) {
	t.index[r.PodUID] = len(t.state.Reservations)
	t.state.Reservations = append(t.state.Reservations, r)
	for scope, s := range t.sums {
		s.reserve(r.name(), r.Holding.In(scope))
	}
}

// Waiting counts a namespace's reservations that were made before the given time.
func (t *Tally) CountOlder(namespace string, before time.Time) int {
	n := 0
	for _, r := range t.state.Reservations {
		if r.Holding.Namespace == namespace && r.CreatedAt.Before(before) {
			n++
		}
	}
	return n
}

// others is what is used within the scope by all but reservations of that name.
func (t *Tally) usedExcept(scope policies.QuotaScope, name podName) policies.Charge {
	s, ok := t.sums[scope]
	if !ok {
		s = sumOf(t.state, scope)
		t.sums[scope] = s
	}
	if _, ok := s.reserved[name]; !ok {
		return s.total
	}
	return s.without(name)
}

func sumOf(state State, scope policies.QuotaScope) *sum {
	s := &sum{reserved: make(map[podName]policies.Charge, len(state.Reservations))}
	for _, h := range state.Base {
		s.base = s.base.Plus(h.In(scope))
	}
	s.total = s.base
	for _, r := range state.Reservations {
		s.reserve(r.name(), r.Holding.In(scope))
	}
	return s
}

func (s *sum) reserve(name podName, c policies.Charge) {
	had, ok := s.reserved[name]
	s.reserved[name] = had.Most(c)
	if !ok {
		s.total = s.total.Plus(c)
		return
	}
	s.total = s.without(podName{})
}

// without adds up all but one name. Subtracting would be wrong where a sum has saturated.
func (s *sum) without(name podName) policies.Charge {
	total := s.base
	for n, c := range s.reserved {
		if n != name {
			total = total.Plus(c)
		}
	}
	return total
}

func (r Reservation) name() podName { return podName{r.Holding.Namespace, r.Name} }
