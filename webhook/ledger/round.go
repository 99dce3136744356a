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
	listed  []Pod         // of the last list
	attempt int
}

// reply is the answer to a waiter, to be sent once the state that it depends on is written.
type reply struct {
	waiter *waiter
	answer Answer
}

// needsWrite reports whether the answer depends on a write.
func (p reply) needsWrite() bool { return !p.waiter.request.DryRun }

// serve answers a batch, and the requests that arrive while a write is tried again. It returns how many there were, when each is
// answered or gone.
func (w *worker) serve(ctx context.Context, batch []*waiter) (served int) {
	w.ledger.counts.batches.Add(1)
	r := &round{worker: w, waiting: batch}
	served, w.writeTook = len(batch), 0
	if recent, ok := w.recent(); ok {
		r.current = &recent
	}
	for {
		if !r.dropGone() || ctx.Err() != nil {
			return served
		}
		err := r.step(ctx)
		if err == nil {
			continue
		}
		if errors.Is(err, ErrRejected) || errors.Is(err, ErrFull) {
			r.answerAll(busyAnswer(5*time.Second, err.Error()))
			return served
		}
		r.backOff(ctx, err)
		more := r.take(maxBatch - len(r.waiting)) // one write for them all
		r.waiting, served = append(r.waiting, more...), served+len(more)
	}
}

// eagerAttempts is the number of conflicts in a row from which the waits grow.
const eagerAttempts = 8

// backOff waits before another attempt. After a first conflict replicas wait for different times, or they would meet again. After
// the next ones they hardly wait: pause keeps those that have written from writing first again.
func (r *round) backOff(ctx context.Context, err error) {
	var wait time.Duration
	switch {
	case errors.Is(err, ErrUnknown): // the API server is in trouble: retry less often
		wait = r.ledger.backOff(r.attempt, 7)
	case errors.Is(err, ErrConflict) && r.attempt == 0:
		wait = time.Duration(r.ledger.options.Random() * float64(min(r.writeTook, maxYield)))
	case errors.Is(err, ErrConflict):
		wait = r.ledger.backOff(max(0, r.attempt-eagerAttempts), 4)
	default:
		wait = r.ledger.backOff(r.attempt, 4)
	}
	sleep(ctx, wait)
	r.attempt++
}

// dropGone drops the waiters that are gone, and reports whether any are left. It is called after every slow call: a
// reservation that nobody waits for is lost for a minute.
func (r *round) dropGone() bool {
	r.waiting = slices.DeleteFunc(r.waiting, (*waiter).gone)
	return len(r.waiting) > 0
}

// step answers the requests it can: first those that fit by the state that was last read and by what watches have shown, then
// the others by a list that starts now, and so after every request of the round arrived.
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
	state, view, viewed := r.view()
	tally := NewTally(state)
	replies := r.decide(tally, false)
	serves := viewed && r.servesPasses(state)
	if serves {
		replies = append(replies, r.passes()...)
	}
	if len(replies) > 0 {
		if err := r.writeReplies(ctx, replies, tally.State()); err != nil {
			return err
		}
		r.answer(replies)
	}
	if serves {
		r.report(state, view.Unmanaged)
	}
	if !r.dropGone() {
		return nil
	}
	return r.reconcile(ctx)
}

// view returns the state that was read, with what watches have shown as its base, if that is later.
func (r *round) view() (State, View, bool) {
	state := r.current.state
	if r.ledger.options.Watcher == nil {
		return state, View{}, false
	}
	view, ok := r.ledger.options.Watcher.View(r.namespaces(), state.Reservations)
	if !ok {
		return state, View{}, false
	}
	view.Gone = r.ledger.options.Gone
	folded, ok := state.Folded(view)
	if ok {
		r.ledger.counts.views.Add(1)
	}
	return folded, view, ok
}

// servesPasses reports whether a state that rests on watches is all that a reconcile without a request has to find: nothing
// has expired, which a list alone can tell, and the last list is not long ago.
func (r *round) servesPasses(state State) bool {
	earliest, _ := r.ledger.bounds()
	expired := func(reservation Reservation) bool { return reservation.expired(earliest) }
	return time.Since(r.lastList) < listPeriod && !slices.ContainsFunc(state.Reservations, expired)
}

// passes are the answers to the reconciles without a request.
func (r *round) passes() (replies []reply) {
	for _, w := range r.waiting {
		if w.reconcileOnly {
			replies = append(replies, reply{waiter: w})
		}
	}
	return replies
}

// writeReplies writes the state that replies depend on. Only admissions need a write that changes nothing but revisions.
func (r *round) writeReplies(ctx context.Context, replies []reply, next State) error {
	admits := func(p reply) bool { return !p.waiter.reconcileOnly && p.needsWrite() }
	passes := func(p reply) bool { return p.waiter.reconcileOnly }
	if !slices.ContainsFunc(replies, admits) && (!slices.ContainsFunc(replies, passes) || next.sameUse(r.current.state)) {
		return nil
	}
	written, err := r.write(ctx, *r.current, next)
	if err != nil {
		r.current = nil
		return err
	}
	r.current = &written
	return nil
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
	r.listed = listing.Pods
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
		if !errors.Is(err, ErrConflict) || !fresh.state.Precedes(listing.Namespaces) {
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
	r.report(reconciled, slices.DeleteFunc(slices.Clone(listing.Pods), func(p Pod) bool { return !p.Unmanaged }))
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
	ctx, cancel := context.WithTimeout(ctx, r.ledger.options.CallTimeout)
	defer cancel()
	r.ledger.counts.lists.Add(1)
	began := time.Now()
	startedAt, _ := r.ledger.bounds() // before the call: the list does not show pods created after it began
	listing, err := r.ledger.options.Lister.List(ctx, r.namespaces())
	if err == nil {
		r.lastList = began
	}
	listing.StartedAt, listing.Gone = startedAt, r.ledger.options.Gone
	return listing, err
}

// namespaces are those of all waiting requests, sorted.
func (r *round) namespaces() (all []string) {
	for _, w := range r.waiting {
		all = append(all, w.request.Budget.Namespaces...)
	}
	slices.Sort(all)
	return slices.Compact(all)
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
func (r *round) report(state State, unmanaged []Pod) {
	r.mu.Lock()
	r.lastReconcile = time.Now()
	budget := r.budget
	r.mu.Unlock()
	if r.ledger.options.Report == nil {
		return
	}
	r.ledger.options.Report(Report{Budget: budget, State: state, Unmanaged: unmanaged})
}
