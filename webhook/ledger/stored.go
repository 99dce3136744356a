package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// readTTL is how long a ledger that differs from the shown one serves to admit without another read, unless other replicas write it: if
// one wrote meanwhile, the write fails, which costs more than a read.
const readTTL = 2 * time.Second

// storedLedger is a ledger as it was read, written or shown.
type storedLedger struct {
	object Object // without a Version: it does not exist yet
	state  State
	readAt time.Time // or written or shown
}

// load reads the ledger. A ledger that does not exist is empty. One that cannot be decoded, or was created again since it was
// last read, has lost reservations: no pod is admitted until they would have expired.
func (n *line) load(ctx context.Context) (storedLedger, error) {
	object, err := n.ledger.get(ctx, n.key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		n.stale = true // or a denial could rest on a ledger from before the list
		return storedLedger{}, err
	}
	now := storedLedger{object: object, readAt: time.Now()}
	// Another object has the name, or none does: the others' reservations in the remembered one are gone.
	remembers := n.last.object.UID != "" && time.Since(n.last.readAt) < ReservationTTL
	lost := remembers && n.last.object.UID != object.UID
	if err == nil {
		now.state, err = decodeOf(n.key, object)
		lost = lost || err != nil
		// Another replica noticed a loss since, and wrote without the reservations that it did not know.
		lost = lost || remembers && !now.state.NotBefore.IsZero() && !now.state.NotBefore.Equal(n.last.state.NotBefore)
	}
	if lost {
		n.stale = true
		now.state = now.state.afterLoss(n.last.state, n.ledger.bounds)
		return now, nil // not remembered, so that the loss is noticed again until it is written
	}
	n.remember(now)
	return now, nil
}

// Read returns the state of the budget's ledger, for reports: it still contains pods that ended since the last list. The zero
// State means that nothing was counted yet.
func (l *Ledger) Read(ctx context.Context, budgetKey string) (State, error) {
	object, err := l.get(ctx, budgetKey)
	switch {
	case errors.Is(err, ErrNotFound):
		return State{}, nil
	case err != nil:
		return State{}, err
	}
	return decodeOf(budgetKey, object)
}

func (l *Ledger) get(ctx context.Context, budgetKey string) (Object, error) {
	ctx, cancel := context.WithTimeout(ctx, l.options.CallTimeout)
	defer cancel()
	l.counts.gets.Add(1)
	object, err := l.options.Store.Get(ctx, ObjectName(budgetKey))
	if err != nil {
		return Object{}, fmt.Errorf("read ledger of %s: %w", budgetKey, err)
	}
	return object, nil
}

// decodeOf decodes the ledger of this budget. It returns an error for another's.
func decodeOf(budgetKey string, object Object) (State, error) {
	key, state, err := Decode(object.Data)
	if err == nil && key != budgetKey {
		err = fmt.Errorf("decode ledger of %s: it is the ledger of %s", budgetKey, key)
	}
	if err != nil {
		return State{}, err
	}
	return state, nil
}

// remember keeps the ledger that was read, written or shown, so that a loss is noticed.
func (n *line) remember(stored storedLedger) {
	n.last, n.stale = stored, false
	n.mu.Lock()
	n.reservations = len(stored.state.Reservations)
	n.mu.Unlock()
}

// recent returns the ledger that is likely the stored one, by what is remembered and what the watch shows, and else reads it.
func (n *line) recent(ctx context.Context) (storedLedger, error) {
	// A write of one that is older conflicts, and the round starts over with the stored one.
	if !n.stale && n.last.object.Version != "" && (n.matchesWatch() || time.Since(n.last.readAt) < readTTL && !n.contended()) {
		return n.last, nil
	}
	// After a conflict as well: by a watch that is as late as others write often, no write would ever succeed.
	return n.load(ctx)
}

// matchesWatch reports whether the remembered ledger is what the watch shows. One that is newer takes its place, unless reservations may
// have been lost: load judges that, at the latest after the conflict of the next write.
func (n *line) matchesWatch() bool {
	object, ok := n.ledger.options.Shown(ObjectName(n.key))
	order, err := resourceversion.CompareResourceVersion(object.Version, n.last.object.Version)
	if !ok || err != nil || order < 0 || object.UID != n.last.object.UID {
		return false
	}
	if order > 0 {
		state, err := decodeOf(n.key, object)
		if err != nil || !state.NotBefore.Equal(n.last.state.NotBefore) {
			return false
		}
		n.remember(storedLedger{object: object, state: state, readAt: time.Now()})
	}
	return true
}

// write replaces the ledger that was read by next. If nothing has changed, it writes nothing.
func (n *line) write(ctx context.Context, from storedLedger, next State) (storedLedger, error) {
	data, err := Encode(n.key, next)
	if err != nil {
		return storedLedger{}, err
	}
	if from.object.Version != "" && bytes.Equal(data, from.object.Data) { // a write would make the other replicas conflict
		return from, nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.ledger.options.CallTimeout)
	defer cancel()
	swap := n.ledger.options.Store.Update
	if from.object.Version == "" {
		swap = n.ledger.options.Store.Create
	}
	n.ledger.counts.writes.Add(1)
	began := time.Now()
	object, err := swap(ctx, Object{Name: ObjectName(n.key), UID: from.object.UID, Version: from.object.Version, Budget: n.key, Data: data})
	n.writeTook = time.Since(began)
	if errors.Is(err, ErrConflict) {
		n.lastConflict = time.Now()
	}
	if err != nil {
		n.stale = true
		n.ledger.counts.failed(err)
		return storedLedger{}, fmt.Errorf("write ledger of %s: %w", n.key, err)
	}
	object.Data = data
	written := storedLedger{object: object, state: next, readAt: time.Now()}
	n.remember(written)
	return written, nil
}

// afterLoss returns s, read in place of a remembered ledger that was deleted or corrupted, with the remembered reservations.
// The reservations of other replicas are unknown, so that no pod is admitted until they would have expired.
func (s State) afterLoss(remembered State, bounds func() (earliest, latest time.Time)) State {
	earliest, latest := bounds()
	t := NewTally(s)
	for _, r := range remembered.Reservations {
		if !t.Has(r) && !r.expired(earliest) {
			t.Reserve(r)
		}
	}
	out := t.State()
	if out.NotBefore.IsZero() {
		out.NotBefore = latest.Add(ReservationTTL)
	}
	return out
}
