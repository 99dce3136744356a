package ledger

import (
	"slices"
	"time"
)

// decide finds the answers to be given once tally is written, in the order of arrival, and reserves in tally what they
// take. Without a list behind it, it leaves open whatever is no "yes".
func (r *round) decide(tally *Tally, listed bool) (verdicts []reply) {
	for _, w := range r.waiting {
		mine := r.reservation(w)
		a := r.evaluate(tally, w, mine)
		if a.Decision == Admitted && !w.request.DryRun && !tally.Has(mine) {
			tally.Reserve(mine)
		}
		if a.Decision == Admitted || listed {
			verdicts = append(verdicts, reply{w, a})
		}
	}
	return verdicts
}

func (r *round) reservation(w *waiter) Reservation {
	q := &w.request
	return Reservation{PodUID: q.PodUID, Name: q.Name, NamespaceUID: q.NamespaceUID, CreatedAt: r.ledger.stamp(), Holding: q.Holding}
}

// judge decides one request on what tally says. It changes nothing.
func (r *round) evaluate(tally *Tally, w *waiter, mine Reservation) Answer {
	state := tally.State()
	switch {
	case w.reconcileOnly:
		return Answer{}
	case !state.Covers(w.request.Budget.Namespaces):
		return busyAnswer(time.Second, "the namespaces of the budget have changed")
	case tally.Has(mine):
		return Answer{Decision: Admitted}
	case !state.NotBefore.IsZero(): // until a list from after it has found what came of the lost reservations
		return busyAnswer(max(state.NotBefore.Sub(mine.CreatedAt), time.Second), "the quota's ledger was lost; what was let in is being counted")
	case r.tooManyStale(tally, mine.Holding.Namespace, mine.CreatedAt):
		return busyAnswer(5*time.Second, "too many pods of the namespace were let in and then not created")
	}
	if excess := tally.Excess(w.request.Quota, mine); len(excess) > 0 {
		return Answer{Decision: Exceeded, Excess: excess}
	}
	return Answer{Decision: Admitted}
}

// floodAge is how old a reservation is that nothing came of, unless the API server is slow: pods that came and went are
// given back by the leader's next pass.
const staleAge = 20 * time.Second

// flooded says that creates of the namespace fail in a loop, or that the ledger has no place left.
func (r *round) tooManyStale(tally *Tally, namespace string, now time.Time) bool {
	return len(tally.State().Reservations) >= maxReservations || tally.CountOlder(namespace, now.Add(-staleAge)) >= r.ledger.options.MaxStaleReservations
}

// refusals are the verdicts on those who do not fit beside what the state says alone. Room that is taken in the same
// round for others counts for nothing here: it may never be written, and by the time it is, a pod of the list may have
// ended, so that there was room at every instant. Those who are left go round once more.
func (r *round) denials(state State) (verdicts []reply) {
	tally := NewTally(state)
	for _, w := range r.waiting {
		if a := r.evaluate(tally, w, r.reservation(w)); a.Decision == Exceeded {
			verdicts = append(verdicts, reply{w, a})
		}
	}
	return verdicts
}

// unrefused are the verdicts but for those for want of room.
func withoutDenials(verdicts []reply) []reply {
	return slices.DeleteFunc(verdicts, func(v reply) bool { return v.answer.Decision == Exceeded })
}
