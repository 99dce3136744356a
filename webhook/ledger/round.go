package ledger

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/guard/ticks"
)

// round answers one batch.
type round struct {
	*line
	waiting []*waiter
	current *storedLedger // nil: read it first
	attempt int
	moved   bool // some waiters, to the other line
}

// reply is the answer to a waiter, to be sent once the state that it depends on is written.
type reply struct {
	waiter *waiter
	answer Answer
}

// serve answers a batch, and the requests that arrive while a write is tried again, until each is answered, moved or canceled. It reports
// whether more requests are likely on their way.
func (n *line) serve(ctx context.Context, batch []*waiter) (more bool) {
	n.ledger.counts.batches.Add(1)
	r := &round{line: n, waiting: batch}
	served := len(batch)
	n.writeTook = 0
	n.beginTurn()
	defer n.endTurn()
	for {
		if !r.dropCanceled() || ctx.Err() != nil {
			return served > 1 || r.moved
		}
		err := r.step(ctx)
		if err == nil {
			continue
		}
		if errors.Is(err, ErrRejected) || errors.Is(err, ErrFull) { // another attempt would fail alike
			r.answerAll(busyAnswer(5*time.Second, err.Error()))
			return served > 1
		}
		r.backOff(ctx, err)
		r.current = nil
		joining := r.take(maxBatch - len(r.waiting)) // one write for them all
		r.waiting, served = append(r.waiting, joining...), served+len(joining)
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
	r.endTurn()
	ticks.Sleep(ctx, wait)
	r.beginTurn()
	r.attempt++
}

// dropCanceled drops the waiters whose callers wait no more, and reports whether any are left. It is called after every slow call: a
// reservation that nobody waits for is lost for a minute.
func (r *round) dropCanceled() bool {
	r.waiting = slices.DeleteFunc(r.waiting, (*waiter).canceled)
	return len(r.waiting) > 0
}

// step answers the requests it can, in phases:
//
//  1. The ledger is read, unless the one that is remembered or shown is likely the stored one.
//  2. Those that fit by it and the watches are admitted, with one write.
//  3. In the line admits, the others move to the line lists, where pods can be listed while this line goes on.
//  4. There, or where that cannot be, they are decided by a list that starts now, and so after each of them arrived.
//
// Requests that were canceled during a call are dropped after it. After an error, the next step starts with phase 1.
func (r *round) step(ctx context.Context) error {
	if r.current == nil { // phase 1
		read := r.recent
		if slices.ContainsFunc(r.waiting, (*waiter).needsRead) {
			read = r.load
		}
		next, err := read(ctx)
		if err != nil {
			return err
		}
		r.current = &next
	}
	if !r.dropCanceled() { // reading took a while
		return nil
	}
	if err := r.admit(ctx); err != nil { // phase 2
		return err
	}
	if !r.dropCanceled() {
		return nil
	}
	// Phase 3. Without revisions a write meanwhile would make the list useless.
	if r.line == &r.admits && r.current.state.HasRevisions(r.namespaces()) {
		r.moveToLists(r.waiting)
		r.waiting, r.moved = nil, true
		return nil
	}
	return r.reconcile(ctx) // phase 4
}

// admit answers the requests that fit without a list.
func (r *round) admit(ctx context.Context) error {
	state, view, viewed := r.view()
	tally := NewTally(state)
	on := coverageNone
	if !view.Pending && (viewed || r.countedRecently(state)) {
		on = coverageCounted
	}
	replies := r.decide(tally, on)
	reconciled := viewed && r.needsNoList(state)
	if reconciled {
		replies = append(replies, r.reconcileReplies()...)
	}
	if len(replies) > 0 {
		if err := r.writeReplies(ctx, replies, tally.State()); err != nil {
			return err
		}
		r.answer(replies)
	}
	if reconciled {
		r.report(state, view.Unmanaged)
	}
	return nil
}

// view returns the state that was read, with the watches' pods as its base, if those are later.
func (r *round) view() (State, View, bool) {
	state := r.current.state
	if r.ledger.options.Watcher == nil {
		return state, View{}, false
	}
	view, ok := r.ledger.options.Watcher.View(r.namespaces(), state.Reservations)
	if !ok {
		return state, View{Pending: view.Pending}, false
	}
	view.Gone = r.ledger.options.Gone
	r.count(view.Namespaces)
	state, ok = state.WithView(view)
	if ok {
		r.ledger.counts.views.Add(1)
	}
	return state, view, ok
}

// countTTL is how long after this replica has listed the pods it admits without counting them again, where they cannot be watched. It
// is longer than a budget with requests waits for its next list: busyReconcilePeriod, CheckInterval and ListTimeout.
const countTTL = 30 * time.Second

// count records that this replica has counted the pods of namespaces.
func (w *worker) count(found []Namespace) { w.counted, w.countedAt = found, time.Now() }

// countedRecently reports whether s contains the pods that this replica has counted a short time ago. Others may have been created
// before that without a review, in an outage or a bypass: they have no reservation.
func (w *worker) countedRecently(s State) bool {
	return time.Since(w.countedAt) < countTTL &&
		!slices.ContainsFunc(w.counted, func(n Namespace) bool { return s.Revisions[n.Name] < n.Revision })
}

// needsNoList reports whether a reconcile without a request can rest on watches: nothing has expired, which only a list can
// release, and the last list is not long ago.
func (r *round) needsNoList(state State) bool {
	earliest, _ := r.ledger.bounds()
	expired := func(reservation Reservation) bool { return reservation.expired(earliest) }
	return time.Since(r.lastList) < listPeriod && !slices.ContainsFunc(state.Reservations, expired)
}

// reconcileReplies are the answers to the reconciles without a request.
func (r *round) reconcileReplies() (replies []reply) {
	for _, w := range r.waiting {
		if w.reconcileOnly {
			replies = append(replies, reply{waiter: w})
		}
	}
	return replies
}

// writeReplies writes the state that replies depend on. Only admissions need a write that changes nothing but revisions.
func (r *round) writeReplies(ctx context.Context, replies []reply, next State) error {
	admits := func(p reply) bool { return !p.waiter.reconcileOnly && !p.waiter.request.DryRun }
	reconciles := func(p reply) bool { return p.waiter.reconcileOnly }
	// Denials need no write: a namespace at its quota causes none.
	if !slices.ContainsFunc(replies, admits) && (!slices.ContainsFunc(replies, reconciles) || next.equalExceptRevisions(r.current.state)) {
		return nil
	}
	written, err := r.write(ctx, *r.current, next)
	if err != nil {
		return err
	}
	r.current = &written
	return nil
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
