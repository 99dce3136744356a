package ledger

import (
	"context"
	"errors"
	"slices"
	"time"
)

// reconcile reads the ledger, lists the pods, decides the rest on both, and writes. Under load another replica has written by
// the time a list is there: then the list serves for the later ledger, as long as that rests on no later list.
func (r *round) reconcile(ctx context.Context) error {
	r.current = nil
	before, err := r.load(ctx)
	if err != nil {
		return err
	}
	namespaces := r.namespaces()
	if r.line == &r.lists {
		r.setListing(true)
		defer r.setListing(false)
	}
	listing, err := r.list(ctx, namespaces)
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

// list lists namespaces.
func (r *round) list(ctx context.Context, namespaces []string) (Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, r.ledger.options.CallTimeout)
	defer cancel()
	r.ledger.counts.lists.Add(1)
	began := time.Now()
	startedAt, _ := r.ledger.bounds() // before the call: the list does not show pods created after it began
	listing, err := r.ledger.options.Lister.List(ctx, namespaces)
	if err == nil {
		r.mu.Lock()
		r.lastList = began
		r.mu.Unlock()
	}
	listing.StartedAt, listing.Gone = startedAt, r.ledger.options.Gone
	return listing, err
}

func (w *worker) setListing(listing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listing = listing
}

// besideList reports whether the other line of the worker is listing.
func (r *round) besideList() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listing && r.line == &r.admits
}
