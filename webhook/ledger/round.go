package ledger

import (
	"context"
	"errors"
	"slices"
	"time"
)

// round is one batch on its way to its answers.
type round struct {
	*worker
	waiting []*waiter
	current *storedLedger // nil: to be read
	attempt int
}

// verdict is the answer that a waiter gets once what it rests on is written.
type reply struct {
	waiter *waiter
	answer Answer
}

// lasting says that the verdict rests on what is written.
func (v reply) isStored() bool { return !v.waiter.request.DryRun }

// serve answers a batch. It returns when all are answered or gone.
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
		doublings := 4
		if errors.Is(err, ErrUnknown) {
			doublings = 7 // the API server has trouble of its own
		}
		sleep(ctx, w.ledger.backOff(r.attempt, doublings))
		r.attempt++
	}
}

// awaited drops those who have gone, and says whether anyone is left. It is asked after every call that takes time:
// room that is reserved for nobody is lost for a minute.
func (r *round) dropGone() bool {
	r.waiting = slices.DeleteFunc(r.waiting, (*waiter).gone)
	return len(r.waiting) > 0
}

// step answers whom it can: first those for whom there is room by what was last read, then, by a list that is begun
// now and so after everyone in the round arrived, the others.
func (r *round) step(ctx context.Context) error {
	if r.current == nil {
		h, err := r.load(ctx)
		if err != nil {
			return err
		}
		r.current = &h
	}
	if !r.dropGone() {
		return nil
	}
	tally := NewTally(r.current.state)
	if admitted := r.decide(tally, false); len(admitted) > 0 {
		if slices.ContainsFunc(admitted, reply.isStored) {
			h, err := r.write(ctx, *r.current, tally.State())
			if err != nil {
				r.current = nil
				return err
			}
			r.current = &h
		}
		r.answer(admitted)
	}
	if !r.dropGone() {
		return nil
	}
	return r.reconcile(ctx)
}

// reconcile reads the ledger, lists, decides the rest on what both say, and swaps. A "no" needs no swap: it holds as
// soon as a later read shows that all it counted was still reserved when the list was made.
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
	if !r.dropGone() {
		return nil
	}
	reconciled := before.state.Reconciled(listing)
	tally := NewTally(reconciled)
	verdicts := r.decide(tally, true)
	after, err := r.writeFor(ctx, before, tally.State())
	if err == nil {
		r.current = &after
		r.answer(withoutDenials(verdicts))
		r.answer(r.denials(reconciled))
		r.report(reconciled, listing)
		return nil
	}
	fresh, unread := r.load(ctx)
	if unread != nil {
		return errors.Join(err, unread)
	}
	r.current = &fresh
	if fresh.object.UID == before.object.UID && fresh.state.Contains(reconciled.Reservations) {
		r.answer(r.denials(reconciled))
	}
	return err
}

// writeFor writes what was decided, if anyone in the round may write. Where nothing is written it reads once more, and
// a ledger that has changed since is a conflict: no "no" is said by a list that went past reservations unseen.
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

// list lists the namespaces of all who wait.
func (r *round) list(ctx context.Context) (Listing, error) {
	var namespaces []string
	for _, w := range r.waiting {
		namespaces = append(namespaces, w.request.Budget.Namespaces...)
	}
	slices.Sort(namespaces)
	ctx, cancel := context.WithTimeout(ctx, r.ledger.options.CallTimeout)
	defer cancel()
	r.ledger.counts.lists.Add(1)
	asked := r.ledger.stamp() // before the list: it says nothing of what comes after
	listing, err := r.ledger.options.Lister.List(ctx, slices.Compact(namespaces))
	listing.StartedAt, listing.Gone = asked, r.ledger.options.Gone
	return listing, err
}

// answer gives the answers, and strikes their waiters off the round.
func (r *round) answer(verdicts []reply) {
	answered := make(map[*waiter]bool, len(verdicts))
	for _, v := range verdicts {
		v.waiter.answer <- v.answer
		if v.waiter.reconcileOnly {
			v.waiter.cancel()
		}
		answered[v.waiter] = true
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

// done notes that the budget was reconciled, and reports it.
func (r *round) report(state State, listing Listing) {
	r.mu.Lock()
	r.lastReconcile = time.Now()
	budget := r.budget
	r.mu.Unlock()
	if r.ledger.options.Report == nil {
		return
	}
	unpromised := slices.DeleteFunc(slices.Clone(listing.Pods), func(p Pod) bool { return !p.Unmanaged })
	r.ledger.options.Report(Report{Budget: budget, State: state, Unmanaged: unpromised})
}
