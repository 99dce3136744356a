package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// lookAside is how long what was read or written is good for a "yes" without reading again: another replica's write
// makes the swap fail, which costs more than a read.
const readTTL = 2 * time.Second

// held is a ledger as it was read or written.
type storedLedger struct {
	object Object // without a Version: there is none yet
	state  State
	readAt time.Time
}

// load reads the ledger as it is now. One that is not there is empty; one that cannot be read as a ledger, or that was
// made again since it was last seen, has lost reservations: nobody is let in until they would have expired.
func (w *worker) load(ctx context.Context) (storedLedger, error) {
	ctx, cancel := context.WithTimeout(ctx, w.ledger.options.CallTimeout)
	defer cancel()
	w.ledger.counts.gets.Add(1)
	object, err := w.ledger.options.Store.Get(ctx, ObjectName(w.key))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return storedLedger{}, fmt.Errorf("read ledger of %s: %w", w.key, err)
	}
	now := storedLedger{object: object, readAt: time.Now()}
	lost := w.last.object.UID != "" && w.last.object.UID != object.UID && time.Since(w.last.readAt) < ReservationTTL
	if err == nil {
		key, state, err := Decode(object.Data)
		now.state = state
		if err != nil || key != w.key {
			now.state, lost = State{}, true
		}
	}
	if lost {
		now.state = now.state.afterLoss(w.last.state, w.ledger.stamp())
		return now, nil // it stays the memory until it is written
	}
	w.remember(now)
	return now, nil
}

// Look reads what the budget's ledger says, for those who only want to know: pods that ended since the last list are still
// in it. The zero State: nothing was counted yet.
func (l *Ledger) Read(ctx context.Context, budgetKey string) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, l.options.CallTimeout)
	defer cancel()
	l.counts.gets.Add(1)
	object, err := l.options.Store.Get(ctx, ObjectName(budgetKey))
	switch {
	case errors.Is(err, ErrNotFound):
		return State{}, nil
	case err != nil:
		return State{}, fmt.Errorf("read ledger of %s: %w", budgetKey, err)
	}
	key, state, err := Decode(object.Data)
	if err == nil && key != budgetKey {
		err = fmt.Errorf("decode ledger of %s: it is that of %s", budgetKey, key)
	}
	return state, err
}

// remember keeps what was read or written, so that a loss is noticed.
func (w *worker) remember(h storedLedger) {
	w.last = h
	w.mu.Lock()
	w.reservations = len(h.state.Reservations)
	w.mu.Unlock()
}

// recent returns what is held in memory, if it is fresh enough to say "yes" by.
func (w *worker) recent() (storedLedger, bool) {
	return w.last, w.last.object.Version != "" && time.Since(w.last.readAt) < readTTL
}

// write swaps what was read for next. Nothing is written where nothing has changed.
func (w *worker) write(ctx context.Context, from storedLedger, next State) (storedLedger, error) {
	data, err := Encode(w.key, next)
	if err != nil {
		return storedLedger{}, err
	}
	if from.object.Version != "" && bytes.Equal(data, from.object.Data) {
		return from, nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.ledger.options.CallTimeout)
	defer cancel()
	swap := w.ledger.options.Store.Update
	if from.object.Version == "" {
		swap = w.ledger.options.Store.Create
	}
	w.ledger.counts.writes.Add(1)
	object, err := swap(ctx, Object{Name: ObjectName(w.key), UID: from.object.UID, Version: from.object.Version, Budget: w.key, Data: data})
	if err != nil {
		w.ledger.counts.failed(err)
		return storedLedger{}, fmt.Errorf("write ledger of %s: %w", w.key, err)
	}
	object.Data = data
	h := storedLedger{object: object, state: next, readAt: time.Now()}
	w.remember(h)
	return h, nil
}

// afterLoss is s, read in place of a ledger that is remembered and was deleted or spoilt: what is remembered of
// reservations is added. What others reserved is not known, so that nobody is let in until it would have expired.
func (s State) afterLoss(remembered State, now time.Time) State {
	t := NewTally(s)
	for _, r := range remembered.Reservations {
		if !t.Has(r) && !r.expired(now) {
			t.Reserve(r)
		}
	}
	out := t.State()
	if out.NotBefore.IsZero() {
		out.NotBefore = now.Add(ReservationTTL)
	}
	return out
}
