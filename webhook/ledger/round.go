package ledger

import (
	"context"
	"errors"
	"slices"
	"time"
)

// round answers one batch.
type round struct {
	*worker
	waiting []*waiter
	current *storedLedger // nil: read it first
	attempt int
}

// reply is the answer to a waiter, to be sent once the state that it depends on is written.
type reply struct {
	waiter *waiter
	answer Answer
}

// needsWrite reports whether the answer depends on a write.
func (p reply) needsWrite() bool { return !p.waiter.request.DryRun }

// serve answers a batch. It returns when every waiter is answered or gone.
func (w *worker) serve(ctx context.Context, batch []*waiter) {
	w.ledger.counts.batches.Add(1)
	w.ledger.counts.requests.Add(int64(len(batch)))
	r := &round{worker: w, waiting: batch}
	if recent, ok := w.recent(); ok {
		r.current = &recent
	}
	for {
		if !r.dropGone() || ctx.Err() != nil {
			return
		}
		err := r.step(ctx)
		if err == nil {
			continue
		}
		if errors.Is(err, ErrRejected) || errors.Is(err, ErrFull) {
			r.answerAll(busyAnswer(5*time.Second, err.Error()))
			return
		}
		r.backOff(ctx, err)
	}
}

// backOff waits before another attempt.
func (r *round) backOff(ctx context.Context, err error) {
	doublings := 4
	if errors.Is(err, ErrUnknown) {
		doublings = 7 // the API server is in trouble: retry less often
	}
	sleep(ctx, r.ledger.backOff(r.attempt, doublings))
	r.attempt++
}

// dropGone drops the waiters that are gone, and reports whether any are left. It is called after every slow call: a
// reservation that nobody waits for is lost for a minute.
func (r *round) dropGone() bool {
	r.waiting = slices.DeleteFunc(r.waiting, (*waiter).gone)
	return len(r.waiting) > 0
}

// step answers the requests it can: first those that fit by the state that was last read, then the others by a list that
// starts now, and so after every request of the round arrived.
func (r *round) step(ctx context.Context) error {
	if r.current == nil {
		next, err := r.load(ctx)
		if err != nil {
			return err
		}
		r.current = &next
	}
	if !r.dropGone() {
		return nil
	}
	tally := NewTally(r.current.state)
	if admitted := r.decide(tally, false); len(admitted) > 0 {
		if slices.ContainsFunc(admitted, reply.needsWrite) {
			next, err := r.write(ctx, *r.current, tally.State())
			if err != nil {
				r.current = nil
				return err
			}
			r.current = &next
		}
		r.answer(admitted)
	}
	if !r.dropGone() {
		return nil
	}
	return r.reconcile(ctx)
}

// reconcile reads the ledger, lists the pods, decides the rest on both, and writes. Under load another replica has written by
// the time a list is there: then the list serves for the later ledger, as long as that rests on no later list.
func (r *round) reconcile(ctx context.Context) error {
	r.current = nil
	before, err := r.load(ctx)
	if err != nil {
		return err
	}
	listing, err := r.list(ctx)
	if err != nil {
		return err
	}
	over, counted := before, before.state.Reconciled(listing)
	for r.dropGone() {
		err := r.writeListing(ctx, over, listing, counted)
		if err == nil {
			return nil
		}
		fresh, readErr := r.load(ctx)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		r.current = &fresh
		if fresh.object.UID != before.object.UID {
			return err
		}
		counted = counted.StillIn(fresh.state)
		r.answer(r.denials(counted))
		if !errors.Is(err, ErrConflict) || !fresh.state.Precedes(listing) {
			return err
		}
		over = fresh
		r.backOff(ctx, err)
	}
	return nil
}

// writeListing decides on the listing and on the ledger that was read, writes both, and answers. A denial rests on counted
// alone: the listed pods, and the reservations that existed when they were listed.
func (r *round) writeListing(ctx context.Context, over storedLedger, listing Listing, counted State) error {
	reconciled := over.state.Reconciled(listing)
	tally := NewTally(reconciled)
	replies := r.decide(tally, true)
	after, err := r.writeFor(ctx, over, tally.State())
	if err != nil {
		return err
	}
	r.current = &after
	r.answer(withoutDenials(replies))
	r.answer(r.denials(counted))
	r.report(reconciled, listing)
	return nil
}

// writeFor writes next, unless all requests of the round are dry runs. Where nothing is written it reads once more, and a
// ledger that has changed since is a conflict: a denial must not depend on a list that missed reservations.
func (r *round) writeFor(ctx context.Context, before storedLedger, next State) (storedLedger, error) {
	if slices.ContainsFunc(r.waiting, func(w *waiter) bool { return !w.request.DryRun }) {
		after, err := r.write(ctx, before, next)
		if err != nil || after.object.Version != before.object.Version {
			return after, err
		}
	}
	after, err := r.load(ctx)
	if err == nil && after.object.Version != before.object.Version {
		return storedLedger{}, ErrConflict
	}
	return after, err
}

// list lists the namespaces of all waiting requests.
func (r *round) list(ctx context.Context) (Listing, error) {
	var namespaces []string
	for _, w := range r.waiting {
		namespaces = append(namespaces, w.request.Budget.Namespaces...)
	}
	slices.Sort(namespaces)
	ctx, cancel := context.WithTimeout(ctx, r.ledger.options.CallTimeout)
	defer cancel()
	r.ledger.counts.lists.Add(1)
	startedAt, _ := r.ledger.bounds() // before the call: the list does not show pods created after it began
	listing, err := r.ledger.options.Lister.List(ctx, slices.Compact(namespaces))
	listing.StartedAt, listing.Gone = startedAt, r.ledger.options.Gone
	return listing, err
}

// answer sends the answers, and drops their waiters from the round.
func (r *round) answer(replies []reply) {
	answered := make(map[*waiter]bool, len(replies))
	for _, p := range replies {
		p.waiter.answer <- p.answer
		if p.waiter.reconcileOnly {
			p.waiter.cancel()
		}
		answered[p.waiter] = true
	}
	r.waiting = slices.DeleteFunc(r.waiting, func(w *waiter) bool { return answered[w] })
}

func (r *round) answerAll(a Answer) {
	var all []reply
	for _, w := range r.waiting {
		all = append(all, reply{w, a})
	}
	r.answer(all)
}

// report records that the budget was reconciled, and calls Options.Report.
func (r *round) report(state State, listing Listing) {
	r.mu.Lock()
	r.lastReconcile = time.Now()
	budget := r.budget
	r.mu.Unlock()
	if r.ledger.options.Report == nil {
		return
	}
	unmanaged := slices.DeleteFunc(slices.Clone(listing.Pods), func(p Pod) bool { return !p.Unmanaged })
	r.ledger.options.Report(Report{Budget: budget, State: state, Unmanaged: unmanaged})
}
