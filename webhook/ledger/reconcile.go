package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// attempt is one list on its way into the ledger. Its methods return new values; doc.go has the picture.
type attempt struct {
	read    storedLedger // before the list began
	listing Listing
	over    storedLedger // to be replaced by next: read, or a later version
	next    State        // over with the list
	// counted is the basis of a denial: the listed pods, and the reservations that existed when they were listed and
	// still do.
	counted State
	failed  error // of the last write; nil: nothing was written yet
}

func newAttempt(read storedLedger, listing Listing) attempt {
	next := read.state.WithList(listing)
	return attempt{read: read, listing: listing, over: read, next: next, counted: next}
}

// withoutReleased returns the attempt without the reservations that a later version of the ledger lacks.
func (a attempt) withoutReleased(later storedLedger) attempt {
	a.counted = a.counted.WithoutReleased(later.state)
	return a
}

// rebased returns the attempt over a later version of the ledger. It returns the reason for a new list where the two cannot be
// compared.
func (a attempt) rebased(later storedLedger) (attempt, error) {
	switch {
	case a.failed != nil && !errors.Is(a.failed, ErrConflict):
		return a, a.failed // the write may have taken effect: it has to be read again
	case !later.state.HasRevisions(namesOf(a.listing.Namespaces)), a.read.state.newerThan(a.listing.Namespaces):
		return a, cmp.Or(a.failed, ErrConflict)
	}
	a.over, a.next = later, later.state.WithNewerParts(a.listing)
	return a, nil
}

// reconcile reads the ledger, lists the pods, decides the rest on both, and writes. Under load others have written by the time a
// list is there: then the list serves for the later ledger, as long as the two can be compared.
func (r *round) reconcile(ctx context.Context) error {
	read, err := r.load(ctx)
	if err != nil {
		return err
	}
	listing, err := r.list(ctx, r.namespaces())
	if err != nil {
		return err
	}
	r.lastList = time.Now()
	r.count(listing.Namespaces)
	for a := newAttempt(read, listing); r.dropCanceled(); {
		stored, err := r.recent(ctx)
		if err != nil {
			return errors.Join(a.failed, err)
		}
		if a.failed != nil || stored.object.Version != read.object.Version { // somebody wrote while the pods were listed
			if a, err = r.rebase(a, stored); err != nil {
				return err
			}
		}
		if a.failed = r.writeAttempt(ctx, a); a.failed == nil {
			return nil
		}
		if errors.Is(a.failed, ErrConflict) { // other errors end the attempt in rebased
			r.backOff(ctx, a.failed)
		}
	}
	return nil
}

// rebase moves the attempt to a ledger that may have changed since it was read. After a failed write it answers the denials first:
// they need no write.
func (r *round) rebase(a attempt, stored storedLedger) (attempt, error) {
	if stored.object.UID != a.read.object.UID { // lost: nobody knows the reservations
		return a, cmp.Or(a.failed, ErrConflict)
	}
	a = a.withoutReleased(stored)
	if a.failed != nil { // else stored may be from before the list
		r.answer(r.denials(a))
	}
	return a.rebased(stored)
}

// writeAttempt decides the requests on the attempt, writes it, and answers.
func (r *round) writeAttempt(ctx context.Context, a attempt) error {
	tally := NewTally(a.next)
	replies := r.decide(tally, coverageListed)
	after, err := r.writeFor(ctx, a.over, tally.State())
	if err != nil {
		return err
	}
	r.current = &after
	r.answer(withoutDenials(replies))
	r.answer(r.denials(a))
	r.report(a.next, slices.DeleteFunc(slices.Clone(a.listing.Pods), func(p Pod) bool { return !p.Unmanaged }))
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

// denials returns the denials of the requests that do not fit beside the attempt's counted pods and reservations.
// Reservations of the same round do not count: they may never be written, and by the time they are, a listed pod may
// have ended, so that at every instant the request did fit. The other requests go through another step.
func (r *round) denials(a attempt) (replies []reply) {
	tally := NewTally(a.counted)
	for _, w := range r.waiting {
		answer := r.evaluate(tally, w, r.reservation(w))
		if answer.Decision != Exceeded { // it fits beside these, but perhaps not beside what was written since
			continue
		}
		namespace := w.request.Holding.Namespace
		elsewhere := func(h quota.Holding) bool { return h.Namespace != namespace }
		answer.Pods = slices.DeleteFunc(slices.Clone(a.listing.Pods), func(p Pod) bool { return elsewhere(p.Holding) })
		answer.Reserved = slices.DeleteFunc(slices.Clone(a.counted.Reservations), func(other Reservation) bool {
			return elsewhere(other.Holding)
		})
		replies = append(replies, reply{w, answer})
	}
	return replies
}

// withoutDenials returns the replies that are no denials.
func withoutDenials(replies []reply) []reply {
	return slices.DeleteFunc(replies, func(p reply) bool { return p.answer.Decision == Exceeded })
}

// list lists namespaces. The line "lists" has no turn meanwhile.
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
