package ledger

import (
	"slices"
	"time"
)

// decide finds the answers to be given once tally is written, in the order of arrival, and reserves in tally what they
// take. Without a list behind it, it leaves open whatever is no "yes".
func (r *round) decide(tally *Tally, listed bool) (verdicts []verdict) {
	for _, w := range r.waiting {
		mine := r.reservation(w)
		a := r.judge(tally, w, mine)
		if a.Verdict == Admitted && !w.request.DryRun && !tally.Has(mine) {
			tally.Reserve(mine)
		}
		if a.Verdict == Admitted || listed {
			verdicts = append(verdicts, verdict{w, a})
		}
	}
	return verdicts
}

func (r *round) reservation(w *waiter) Reservation {
	q := &w.request
	return Reservation{PodUID: q.PodUID, Name: q.Name, NamespaceUID: q.NamespaceUID, At: r.ledger.stamp(), Holding: q.Holding}
}

// judge decides one request on what tally says. It changes nothing.
func (r *round) judge(tally *Tally, w *waiter, mine Reservation) Answer {
	state := tally.State()
	switch {
	case w.pass:
		return Answer{}
	case !state.Covers(w.request.Budget.Namespaces):
		return busy(time.Second, "the namespaces of the budget have changed")
	case tally.Has(mine):
		return Answer{Verdict: Admitted}
	case !state.NotBefore.IsZero(): // until a list from after it has found what came of the lost reservations
		return busy(max(state.NotBefore.Sub(mine.At), time.Second), "the quota's ledger was lost; what was let in is being counted")
	case r.flooded(tally, mine.Holding.Namespace, mine.At):
		return busy(5*time.Second, "too many pods of the namespace were let in and then not created")
	}
	if excess := tally.Excess(w.request.Quota, mine); len(excess) > 0 {
		return Answer{Verdict: Exceeded, Excess: excess}
	}
	return Answer{Verdict: Admitted}
}

// floodAge is how old a reservation is that nothing came of, unless the API server is slow: pods that came and went are
// given back by the leader's next pass.
const floodAge = 20 * time.Second

// flooded says that creates of the namespace fail in a loop, or that the ledger has no place left.
func (r *round) flooded(tally *Tally, namespace string, now time.Time) bool {
	return len(tally.State().Reservations) >= maxReservations || tally.Waiting(namespace, now.Add(-floodAge)) >= r.ledger.options.FloodCap
}

// refusals are the verdicts on those who do not fit beside what the state says alone. Room that is taken in the same
// round for others counts for nothing here: it may never be written, and by the time it is, a pod of the list may have
// ended, so that there was room at every instant. Those who are left go round once more.
func (r *round) refusals(state State) (verdicts []verdict) {
	tally := NewTally(state)
	for _, w := range r.waiting {
		if a := r.judge(tally, w, r.reservation(w)); a.Verdict == Exceeded {
			verdicts = append(verdicts, verdict{w, a})
		}
	}
	return verdicts
}

// unrefused are the verdicts but for those for want of room.
func unrefused(verdicts []verdict) []verdict {
	return slices.DeleteFunc(verdicts, func(v verdict) bool { return v.answer.Verdict == Exceeded })
}
