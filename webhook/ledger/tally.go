package ledger

import (
	"maps"
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// Tally adds reservations to a copy of a State one by one, and keeps the sums.
type Tally struct {
	state State
	index map[string]int // of the reservation, by pod UID
	sums  map[quota.Scope]*sum
}

// podName identifies a pod; at most one living pod has it.
type podName struct{ namespace, name string }

// sum is the usage within one scope.
type sum struct {
	base     quota.Charge
	reserved map[podName]quota.Charge
	total    quota.Charge
}

// NewTally returns a Tally of s, and does not change s.
func NewTally(s State) *Tally {
	s.Reservations = slices.Clone(s.Reservations)
	t := &Tally{state: s, index: make(map[string]int, len(s.Reservations)), sums: make(map[quota.Scope]*sum)}
	for i, r := range s.Reservations {
		t.index[r.PodUID] = i
	}
	return t
}

// State returns the state with all reservations that were added.
func (t *Tally) State() State { return t.state }

// Has reports whether the same reservation exists already: the API server sent the review twice.
func (t *Tally) Has(r Reservation) bool {
	i, ok := t.index[r.PodUID]
	if !ok {
		return false
	}
	have := t.state.Reservations[i]
	return have.Name == r.Name && have.Holding.Namespace == r.Holding.Namespace && have.Holding.Charge == r.Holding.Charge &&
		maps.Equal(have.Holding.Units, r.Holding.Units) && have.Holding.Traits == r.Holding.Traits
}

// Excess returns the limits that r exceeds together with the usage of other pods. Reservations of the same name do not count:
// if r's pod can be created, theirs cannot.
func (t *Tally) Excess(q quota.Quota, r Reservation) []quota.Excess {
	used := func(scope quota.Scope) quota.Charge { return t.usedExcept(scope, r.name()) }
	return q.Excess(used, r.Holding)
}

// Reserve adds r. It never removes a reservation, not even for another review of the same pod.
func (t *Tally) Reserve(r Reservation) {
	t.index[r.PodUID] = len(t.state.Reservations)
	t.state.Reservations = append(t.state.Reservations, r)
	for scope, s := range t.sums {
		s.reserve(r.name(), r.Holding.In(scope))
	}
}

// CountOlder returns how many of a namespace's reservations were created before the given time.
func (t *Tally) CountOlder(namespace string, before time.Time) int {
	n := 0
	for _, r := range t.state.Reservations {
		if r.Holding.Namespace == namespace && r.CreatedAt.Before(before) {
			n++
		}
	}
	return n
}

// usedExcept returns the usage within the scope without the reservations of that name.
func (t *Tally) usedExcept(scope quota.Scope, name podName) quota.Charge {
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

func sumOf(state State, scope quota.Scope) *sum {
	s := &sum{reserved: make(map[podName]quota.Charge, len(state.Reservations))}
	for _, h := range state.Base {
		s.base = s.base.Plus(h.In(scope))
	}
	s.total = s.base
	for _, r := range state.Reservations {
		s.reserve(r.name(), r.Holding.In(scope))
	}
	return s
}

func (s *sum) reserve(name podName, c quota.Charge) {
	had, ok := s.reserved[name]
	s.reserved[name] = had.Most(c)
	if !ok {
		s.total = s.total.Plus(c)
		return
	}
	s.total = s.without(podName{})
}

// without returns the sum without one name. It adds up the rest, since subtracting from a saturated sum would be wrong.
func (s *sum) without(name podName) quota.Charge {
	total := s.base
	for n, c := range s.reserved {
		if n != name {
			total = total.Plus(c)
		}
	}
	return total
}

func (r Reservation) name() podName { return podName{r.Holding.Namespace, r.Name} }
