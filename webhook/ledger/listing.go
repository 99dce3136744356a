package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// reconcile reads the ledger, lists the pods, decides the rest on both, and writes. Under load others have written by the time a
// list is there: then the list serves for the later ledger, as long as the two can be compared.
func (r *round) reconcile(ctx context.Context) error {
	before, err := r.load(ctx)
	if err != nil {
		return err
	}
	namespaces := r.namespaces()
	listing, err := r.list(ctx, namespaces)
	if err != nil {
		return err
	}
	r.listed, r.lastList = listing.Pods, time.Now()
	over, reconciled := before, before.state.Reconciled(listing)
	counted := reconciled
	var failed error // the last write
	for r.dropGone() {
		fresh, err := r.latest(ctx)
		if err != nil {
			return errors.Join(failed, err)
		}
		if failed != nil || fresh.object.Version != before.object.Version {
			if fresh.object.UID != before.object.UID {
				return cmp.Or(failed, ErrConflict)
			}
			counted = counted.StillIn(fresh.state)
			if failed != nil { // else fresh may be from before the list
				r.answer(r.denials(counted))
			}
			if failed != nil && !errors.Is(failed, ErrConflict) || !fresh.state.Comparable(namespaces) || before.state.laterThan(listing.Namespaces) {
				return cmp.Or(failed, ErrConflict)
			}
			over, reconciled = fresh, fresh.state.Merged(listing)
		}
		if failed = r.writeListing(ctx, over, reconciled, counted, listing.Pods); failed == nil {
			return nil
		}
		if errors.Is(failed, ErrConflict) {
			r.backOff(ctx, failed)
		}
	}
	return nil
}

// writeListing decides on the reconciled state, writes it over the ledger that was read, and answers. A denial rests on counted
// alone: the listed pods, and the reservations that existed when they were listed.
func (r *round) writeListing(ctx context.Context, over storedLedger, reconciled, counted State, listed []Pod) error {
	tally := NewTally(reconciled)
	replies := r.decide(tally, true)
	after, err := r.writeFor(ctx, over, tally.State())
	if err != nil {
		return err
	}
	r.current = &after
	r.answer(withoutDenials(replies))
	r.answer(r.denials(counted))
	r.report(reconciled, slices.DeleteFunc(slices.Clone(listed), func(p Pod) bool { return !p.Unmanaged }))
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

// list lists namespaces. Line lists has no turn meanwhile.
func (r *round) list(ctx context.Context, namespaces []string) (Listing, error) {
	if r.line == &r.lists {
		r.endTurn()
		defer r.beginTurn()
	}
	ctx, cancel := context.WithTimeout(ctx, r.ledger.options.ListTimeout)
	defer cancel()
	r.ledger.counts.lists.Add(1)
	startedAt, _ := r.ledger.bounds() // before the call: the list does not show pods created after it began
	listing, err := r.ledger.options.Lister.List(ctx, namespaces)
	listing.StartedAt, listing.Gone = startedAt, r.ledger.options.Gone
	return listing, err
}
