package ledger

import "time"

// decide finds the answers to be given once tally is written, in the order of arrival. Without a list behind it, it
// leaves open whatever is no "yes".
func (r *round) decide(tally *Tally, listed bool) (verdicts []verdict) {
	for _, w := range r.waiting {
		if a := r.judge(tally, w, listed); a.Verdict == Admitted || listed {
			verdicts = append(verdicts, verdict{w, a})
		}
	}
	return verdicts
}

// judge decides one request, and reserves its room in tally.
func (r *round) judge(tally *Tally, w *waiter, listed bool) Answer {
	req, now := &w.request, r.ledger.stamp()
	mine := Reservation{PodUID: req.PodUID, Name: req.Name, NamespaceUID: req.NamespaceUID, At: now, Holding: req.Holding}
	state := tally.State()
	switch {
	case w.pass:
		return Answer{}
	case !state.Covers(req.Budget.Namespaces):
		return busy(time.Second, "the namespaces of the budget have changed")
	case tally.Has(mine):
		return Answer{Verdict: Admitted}
	case !state.NotBefore.IsZero(): // until a list from after it has found what came of the lost reservations
		return busy(max(state.NotBefore.Sub(now), time.Second), "the quota's ledger was lost; what was let in is being counted")
	case r.flooded(tally, req.Holding.Namespace, now):
		return busy(5*time.Second, "too many pods of the namespace were let in and then not created")
	}
	if excess := tally.Excess(req.Quota, mine); len(excess) > 0 {
		return Answer{Verdict: Exceeded, Excess: excess}
	}
	if !req.DryRun {
		tally.Reserve(mine)
	}
	return Answer{Verdict: Admitted}
}

// floodAge is how old a reservation is that nothing came of, unless the API server is slow.
const floodAge = 5 * time.Second

// flooded says that creates of the namespace fail in a loop, or that the ledger has no place left.
func (r *round) flooded(tally *Tally, namespace string, now time.Time) bool {
	return len(tally.State().Reservations) >= maxReservations || tally.Waiting(namespace, now.Add(-floodAge)) >= r.ledger.options.FloodCap
}

// refusals are the verdicts on those who do not fit beside what the state says alone. Room that was taken in the same
// round for others, and never written, counts for nothing here.
func (r *round) refusals(state State) (verdicts []verdict) {
	for _, w := range r.waiting {
		if a := r.judge(NewTally(state), w, true); a.Verdict == Exceeded {
			verdicts = append(verdicts, verdict{w, a})
		}
	}
	return verdicts
}
