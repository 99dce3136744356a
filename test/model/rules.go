package model

import (
	"strconv"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// Limit is how many slices the quota allows, each the same part of a device.
const Limit = 1

const share = 1_000_000

// quota is the limit as the ledger knows it, which counts GPU equivalents.
func oneSlice() quota.Quota {
	most := quota.Charge{Devices: Limit * share}
	return quota.Quota{Limits: []quota.Limit{{Name: "team-a", Limits: quota.Limits{Devices: &most.Devices}}}}
}

// Times for the ledger's own code: it looks at ages only.
func asked() time.Time { return time.Unix(1_000_000, 0) }

func reservedAt(old bool) time.Time {
	if old {
		return asked().Add(-2 * ledger.ReservationTTL)
	}
	return asked()
}

func holding() quota.Holding {
	return quota.Holding{Namespace: "team-a", Charge: quota.Charge{Slices: 1, Devices: share}}
}

func reservation(pod int, old bool) ledger.Reservation {
	return ledger.Reservation{PodUID: strconv.Itoa(pod), Name: names[pod], CreatedAt: reservedAt(old), Holding: holding()}
}

// listing is a list of that rank which found these pods.
func listing(found set, rank uint8) ledger.Listing {
	l := ledger.Listing{StartedAt: asked(), Namespaces: []ledger.Namespace{{Name: "team-a", Revision: uint64(rank)}}}
	for pod := range Pods {
		if found.has(pod) {
			l.Pods = append(l.Pods, ledger.Pod{UID: strconv.Itoa(pod), Name: names[pod], Holding: holding()})
		}
	}
	return l
}

// view is the view of a watch at that rank.
func view(found set, rank uint8) ledger.View {
	l := listing(found, rank)
	v := ledger.View{Namespaces: l.Namespaces, Shown: map[string]bool{}}
	for _, p := range l.Pods {
		v.Shown[p.UID] = true
		v.Base = append(v.Base, p.Holding)
	}
	return v
}

// state is the stored ledger as the ledger's own code sees it, where these of the reservations have expired.
func (l Ledger) state(old set) ledger.State {
	var s ledger.State
	if l.Listed {
		s.Namespaces = []string{"team-a"}
	}
	if l.Rank > 0 {
		s.Revisions = map[string]uint64{"team-a": uint64(l.Rank)}
	}
	if l.Base > 0 {
		sum := quota.Holding{Namespace: "team-a"}
		for range l.Base {
			sum = sum.Plus(holding())
		}
		s.Base = []quota.Holding{sum}
	}
	for pod := range Pods {
		if l.Reserved.has(pod) {
			s.Reservations = append(s.Reservations, reservation(pod, old.has(pod)))
		}
	}
	return s
}

// stored is the reverse of state.
func stored(s ledger.State) Ledger {
	l := Ledger{Listed: s.Covers([]string{"team-a"}), Rank: uint8(s.Revisions["team-a"])}
	for _, h := range s.Base {
		l.Base += uint8(h.Charge.Slices)
	}
	for _, r := range s.Reservations {
		pod, err := strconv.Atoi(r.PodUID)
		if err != nil {
			panic("reservation for " + r.PodUID + ", which is no pod of the model")
		}
		l.Reserved = l.Reserved.with(pod)
	}
	return l
}

// reserve decides a request on the content of the ledger: the ledger to be written, and whether the answer is yes.
func (l Ledger) reserve(pod int) (next Ledger, ok bool) {
	t := ledger.NewTally(l.state(0))
	mine := reservation(pod, false)
	switch {
	case t.Has(mine):
		return l, true
	case len(t.Excess(oneSlice(), mine)) > 0:
		return l, false
	}
	t.Reserve(mine)
	return stored(t.State()), true
}

// reconciled is the ledger after a list of that rank which found these pods.
func (l Ledger) reconciled(found, old set, rank uint8) Ledger {
	return stored(l.state(old).WithList(listing(found, rank)))
}

// merged is reconciled of a ledger that was read after the list.
func (l Ledger) merged(found, old set, rank uint8) Ledger {
	return stored(l.state(old).WithNewerParts(listing(found, rank)))
}

// folded is the ledger with what a watch had shown at that rank.
func (l Ledger) folded(found set, rank uint8) Ledger {
	s := l.state(0)
	s.Revisions = map[string]uint64{"team-a": uint64(rank)} // the explorer decides which ledgers may be folded
	next, ok := s.WithView(view(found, rank))
	if !ok {
		panic("a view of the same revision is not folded")
	}
	return stored(next)
}

// precedes reports whether a view of that rank may be swapped in although the ledger was read after it.
func (l Ledger) precedes(rank uint8) bool {
	return l.state(0).NotNewerThan(listing(0, rank).Namespaces)
}

// comparable reports whether a list may be swapped in although the ledger was read after it.
func (l Ledger) comparable() bool { return l.state(0).HasRevisions([]string{"team-a"}) }

// stillIn is the ledger without the reservations that a later one lacks.
func (l Ledger) stillIn(later Ledger) Ledger {
	return stored(l.state(0).WithoutReleased(later.state(0)))
}

// rules remembers results of the ledger's own code: the model makes the same calls again and again.
type rules struct {
	reserved   map[reserveCall]reserveAnswer
	reconciled map[reconcileCall]Ledger
	merges     map[reconcileCall]Ledger
	folds      map[reconcileCall]Ledger
	left       map[[2]Ledger]Ledger
}

type reserveCall struct {
	ledger Ledger
	pod    int
}

type reserveAnswer struct {
	next Ledger
	yes  bool
}

type reconcileCall struct {
	ledger     Ledger
	found, old set
	rank       uint8
}

func newRules() *rules {
	return &rules{map[reserveCall]reserveAnswer{}, map[reconcileCall]Ledger{}, map[reconcileCall]Ledger{},
		map[reconcileCall]Ledger{}, map[[2]Ledger]Ledger{}}
}

func (r *rules) reserve(l Ledger, pod int) (Ledger, bool) {
	a := recall(r.reserved, reserveCall{l, pod}, func(c reserveCall) (a reserveAnswer) {
		a.next, a.yes = c.ledger.reserve(c.pod)
		return a
	})
	return a.next, a.yes
}

func (r *rules) reconcile(l Ledger, found, old set, rank uint8) Ledger {
	call := reconcileCall{l, found, old, rank}
	return recall(r.reconciled, call, func(c reconcileCall) Ledger { return c.ledger.reconciled(c.found, c.old, c.rank) })
}

func (r *rules) merge(l Ledger, found, old set, rank uint8) Ledger {
	call := reconcileCall{l, found, old, rank}
	return recall(r.merges, call, func(c reconcileCall) Ledger { return c.ledger.merged(c.found, c.old, c.rank) })
}

func (r *rules) fold(l Ledger, found set, rank uint8) Ledger {
	call := reconcileCall{l, found, 0, rank}
	return recall(r.folds, call, func(c reconcileCall) Ledger { return c.ledger.folded(c.found, c.rank) })
}

func (r *rules) stillIn(l, later Ledger) Ledger {
	return recall(r.left, [2]Ledger{l, later}, func(c [2]Ledger) Ledger { return c[0].stillIn(c[1]) })
}

func recall[K comparable, V any](known map[K]V, key K, find func(K) V) V {
	v, ok := known[key]
	if !ok {
		v = find(key)
		known[key] = v
	}
	return v
}
