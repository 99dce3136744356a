package ledger

import (
	"context"
	"slices"
	"time"
)

const (
	// restful is how long a budget in which nothing happens goes without a reconcile.
	idleReconcilePeriod = time.Minute
	// hurried is how long a budget that is never idle goes without one.
	busyReconcilePeriod = 10 * time.Second
	// minding is how long a replica that does not lead looks after a budget it was asked about, and forgotten is when
	// it drops what it knows of it.
	followerTTL = 2 * ReservationTTL
	workerTTL   = 10 * time.Minute
)

// Run keeps the ledgers true while nobody is refused: reservations that came to nothing are given back, and pods that
// ended are. It returns when ctx ends.
func (l *Ledger) Run(ctx context.Context) {
	ticker := time.NewTicker(l.options.CheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.enqueueDue()
		}
	}
}

// PodChanged says that a pod of the namespace was created, ended or was deleted: its budgets are reconciled soon.
func (l *Ledger) PodChanged(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.workers {
		w.mu.Lock()
		if slices.Contains(w.budget.Namespaces, namespace) {
			w.podsChanged = true
		}
		w.mu.Unlock()
	}
}

// LookAtAll has every budget reconciled soon: whoever begins to lead has seen no Report of them yet.
func (l *Ledger) ReconcileAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.workers {
		w.mu.Lock()
		w.podsChanged = true
		w.mu.Unlock()
	}
}

// pass asks for a reconcile of each budget that needs one and is this replica's to look after.
func (l *Ledger) enqueueDue() {
	leads := l.options.Leads != nil && l.options.Leads()
	var all []Budget
	if leads && l.options.Budgets != nil {
		all = l.options.Budgets()
	}
	for _, b := range l.due(leads, all) {
		ctx, cancel := context.WithTimeout(l.ctx, DefaultTimeout)
		w := &waiter{ctx: ctx, request: Request{Budget: b}, reconcileOnly: true, cancel: cancel, answer: make(chan Answer, 1)}
		if !l.enqueue(b, w) {
			cancel()
		}
	}
}

// rename notes who shares the budget.
func (w *worker) setBudget(b Budget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget = b
}

// due lists the budgets that need a reconcile: of all there are, where this replica leads, and of those it was asked
// about. It forgets those that are gone and that nobody asks about any more.
func (l *Ledger) due(leads bool, all []Budget) (out []Budget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	there := make(map[string]bool, len(all))
	for _, b := range all {
		there[b.Key] = true
		l.workerFor(b).setBudget(b)
	}
	for key, w := range l.workers {
		w.mu.Lock()
		if !there[key] && !w.running && time.Since(w.lastRequest) > workerTTL {
			delete(l.workers, key)
		}
		if (leads || time.Since(w.lastRequest) < followerTTL) && w.needsReconcile() {
			w.podsChanged = false
			out = append(out, w.budget)
		}
		w.mu.Unlock()
	}
	return out
}

// needsPass says that the ledger may have become untrue, and that no round is about to mend it, or that none did for a
// while: rounds that only say yes list nothing. w.mu is held.
func (w *worker) needsReconcile() bool {
	since := time.Since(w.lastReconcile)
	return (len(w.queue) == 0 || since > busyReconcilePeriod) && (w.podsChanged || w.reservations > 0 || since > idleReconcilePeriod)
}
