package ledger

import "time"

// coverage is what a tally rests on.
type coverage int

const (
	// pods that this replica may not have counted: only dry runs are answered, and requests that already have a reservation
	coverageNone    coverage = iota
	coverageCounted          // pods that it has counted: nothing can be denied
	coverageListed           // a new list
)

// decide returns the answers to send once tally is written, in the order of arrival, and adds the reservations to tally.
// Unless tally rests on a new list, it returns the admissions only.
func (r *round) decide(tally *Tally, on coverage) (replies []reply) {
	for _, w := range r.waiting {
		mine := r.reservation(w)
		// A dry run takes nothing. To count for each would list the pods each time, where they cannot be watched.
		if on == coverageNone && !w.request.DryRun && !tally.Has(mine) {
			continue
		}
		a := r.evaluate(tally, w, mine)
		// A review that is sent again has its reservation already.
		if a.Decision == Admitted && !w.request.DryRun && !tally.Has(mine) {
			tally.Reserve(mine)
		}
		if a.Decision == Admitted || on == coverageListed {
			replies = append(replies, reply{w, a})
		}
	}
	return replies
}

func (r *round) reservation(w *waiter) Reservation {
	q := &w.request
	_, latest := r.ledger.bounds()
	return Reservation{PodUID: q.PodUID, Name: q.Name, NamespaceUID: q.NamespaceUID, CreatedAt: latest, Holding: q.Holding}
}

// evaluate decides one request on tally, and changes nothing.
func (r *round) evaluate(tally *Tally, w *waiter, mine Reservation) Answer {
	state := tally.State()
	switch {
	case w.reconcileOnly:
		return Answer{}
	case !state.Covers(w.request.Budget.Namespaces):
		return busyAnswer(time.Second, "the namespaces of the budget have changed")
	case tally.Has(mine):
		return Answer{Decision: Admitted}
	case !state.NotBefore.IsZero(): // pods of lost reservations may not be listed yet
		return busyAnswer(max(state.NotBefore.Sub(mine.CreatedAt), time.Second), "the quota's ledger was lost; admitted pods are being counted")
	case r.tooManyStale(tally, mine.Holding.Namespace, mine.CreatedAt):
		return busyAnswer(5*time.Second, "too many pods of the namespace were admitted and then not created")
	}
	if excess := tally.Excess(w.request.Quota, mine); len(excess) > 0 {
		return Answer{Decision: Exceeded, Excess: excess}
	}
	return Answer{Decision: Admitted}
}

// staleAge is the age from which a reservation without a pod counts as stale, unless the API server is slow: the leader's
// next reconcile releases the reservations of pods that came and went.
const staleAge = 20 * time.Second

// tooManyStale reports whether creates of the namespace fail in a loop, or the ledger is full.
func (r *round) tooManyStale(tally *Tally, namespace string, now time.Time) bool {
	return len(tally.State().Reservations) >= maxReservations ||
		tally.CountOlder(namespace, now.Add(-staleAge)) >= r.ledger.options.MaxStaleReservations
}
