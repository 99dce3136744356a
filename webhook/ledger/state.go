package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/policies"
)

// Expiry is the age from which a reservation that no list shows is given back. The API server ends a request after 34
// seconds at the latest; the rest is a margin for clocks that differ and writes that land late.
const ReservationTTL = 60 * time.Second

// State is what a ledger says. Its methods return new values and never change the one they are called on.
type State struct {
	// Base is what the pods held that the last list found, one Holding for each namespace, set of pools and traits.
	Base []policies.Holding `json:"base,omitempty"`
	// Listed are the namespaces of that list. Of others, the ledger knows nothing.
	Namespaces []string `json:"listed,omitempty"`
	// Reservations are for pods that were let in and that no list has shown, oldest first.
	Reservations []Reservation `json:"reservations,omitempty"`
	// NotBefore ends the time in which nobody is let in, because reservations may have been lost with an earlier ledger.
	// It stays until a list that was begun after it has found the pods that came of them.
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// Reservation is room for one pod that was let in.
type Reservation struct {
	PodUID       string           `json:"uid"`
	Name         string           `json:"name"`
	NamespaceUID string           `json:"nsUID,omitempty"`
	CreatedAt    time.Time        `json:"at"`
	Holding      policies.Holding `json:"holding"` // with the pod's namespace
}

// Listing is what one consistent list of a budget's namespaces found.
type Listing struct {
	// Asked is when the list was begun, by the clock of whoever asked.
	StartedAt  time.Time
	Namespaces []Namespace // all that were asked for
	Pods       []Pod       // those that have neither succeeded nor failed
	// Left are pods that were seen to end or to be deleted, before or after the list.
	Gone *GonePods
}

// Namespace is a namespace as a list found it. A namespace that is not there has no UID.
type Namespace struct {
	Name    string
	UID     string
	Created time.Time
}

// Pod is a pod as a list found it.
type Pod struct {
	UID     string
	Name    string
	Holding policies.Holding
	// Unpromised says that the pod came without a Promise to be trusted: it was created while nobody looked.
	Unmanaged bool
}

// Used is what is held and reserved within the scope. Reservations of one namespace and name count by their maximum:
// two pods of one name cannot both be.
func (s State) Used(scope policies.QuotaScope) policies.Charge {
	return NewTally(s).usedExcept(scope, podName{})
}

// Held is what living pods held within the scope when they were last listed.
func (s State) Held(scope policies.QuotaScope) (c policies.Charge) {
	for _, h := range s.Base {
		c = c.Plus(h.In(scope))
	}
	return c
}

// Figures says how the limits of the budget's quota stand.
func (s State) Figures(q policies.Quota) []policies.Figure {
	tally := NewTally(s)
	return q.Figures(s.Held, func(scope policies.QuotaScope) policies.Charge { return tally.usedExcept(scope, podName{}) })
}

// Covers says that the last list told of all these namespaces. What it did not tell of may be full of pods.
func (s State) Covers(namespaces []string) bool {
	return !slices.ContainsFunc(namespaces, func(n string) bool { return !slices.Contains(s.Namespaces, n) })
}

// Reconciled takes the list as the new base and drops the reservations that it settles. s has to be what the ledger
// said before the list was begun; the result may be written only over that very version.
func (s State) Reconciled(l Listing) State {
	listed := make(map[string]bool, len(l.Pods))
	for _, p := range l.Pods {
		listed[p.UID] = true
	}
	out := State{Base: baseOf(l.Pods), NotBefore: s.NotBefore}
	for _, n := range l.Namespaces {
		out.Namespaces = append(out.Namespaces, n.Name)
	}
	slices.Sort(out.Namespaces)
	for _, r := range s.Reservations {
		if !listed[r.PodUID] && !l.Gone.Has(r.PodUID) && !r.expired(l.StartedAt) && !r.ofDeletedNamespace(l.Namespaces) {
			out.Reservations = append(out.Reservations, r)
		}
	}
	if !l.StartedAt.Before(out.NotBefore) {
		out.NotBefore = time.Time{}
	}
	return out
}

// expired says that no pod can come of the reservation any more. The time is that before the list was begun: a list
// says nothing of pods that were created after it.
func (r Reservation) expired(asked time.Time) bool { return asked.Sub(r.CreatedAt) > ReservationTTL }

// namespaceMargin is by how much a reservation has to be older than its namespace to belong to an earlier one of that
// name: clocks differ, and whoever reserved may have known the old UID only.
const namespaceMargin = 25 * time.Second

// ofGoneNamespace says that the reservation's namespace was deleted and made again since.
func (r Reservation) ofDeletedNamespace(namespaces []Namespace) bool {
	i := slices.IndexFunc(namespaces, func(n Namespace) bool { return n.Name == r.Holding.Namespace })
	if i < 0 || r.NamespaceUID == "" || namespaces[i].UID == "" || namespaces[i].UID == r.NamespaceUID {
		return false
	}
	return namespaces[i].Created.Sub(r.CreatedAt) > namespaceMargin
}

// Holds says that all of these are reserved in s.
func (s State) Contains(reservations []Reservation) bool {
	have := make(map[string]bool, len(s.Reservations))
	for _, r := range s.Reservations {
		have[r.PodUID] = true
	}
	return !slices.ContainsFunc(reservations, func(r Reservation) bool { return !have[r.PodUID] })
}

// baseOf adds pods up by namespace, pools and traits, in a stable order.
func baseOf(pods []Pod) []policies.Holding {
	sums := make(map[string]policies.Holding)
	for _, p := range pods {
		if p.Holding.Charge == (policies.Charge{}) {
			continue
		}
		key := fmt.Sprintf("%s\x00%s\x00%+v", p.Holding.Namespace, strings.Join(p.Holding.Pools, "\x00"), p.Holding.Traits)
		if sum, ok := sums[key]; ok {
			sums[key] = sum.Plus(p.Holding)
		} else {
			sums[key] = p.Holding
		}
	}
	out := make([]policies.Holding, 0, len(sums))
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, sums[key])
	}
	return out
}
