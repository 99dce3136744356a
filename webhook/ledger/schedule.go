package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/guard/ticks"
)

const (
	// idleReconcilePeriod is between two reconciles of a budget in which nothing happens.
	idleReconcilePeriod = time.Minute
	// busyReconcilePeriod is between two reconciles of a budget that always has requests.
	busyReconcilePeriod = 10 * time.Second
	// listPeriod is between two lists of a budget whose namespaces are watched: a watch may be stuck.
	listPeriod = 5 * time.Minute
	// followerTTL is how long after a request a replica that does not lead reconciles the budget; workerTTL is when it drops
	// the worker.
	followerTTL = 2 * ReservationTTL
	workerTTL   = 10 * time.Minute
)

// Run reconciles budgets without requests, so that stale reservations and ended pods are released. It returns when ctx ends.
func (l *Ledger) Run(ctx context.Context) {
	for range ticks.After(ctx, l.options.CheckInterval) {
		l.enqueueDue()
	}
}

// PodChanged has the budgets of a namespace reconciled soon, because a pod was created, ended or was deleted.
func (l *Ledger) PodChanged(namespace string) {
	l.reconcileSoon(func(b Budget) bool { return slices.Contains(b.Namespaces, namespace) })
}

// ReconcileAll has every budget reconciled soon: a new leader has seen no Report yet.
func (l *Ledger) ReconcileAll() { l.reconcileSoon(func(Budget) bool { return true }) }

func (l *Ledger) reconcileSoon(which func(Budget) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.workers {
		w.mu.Lock()
		w.podsChanged = w.podsChanged || which(w.budget)
		w.mu.Unlock()
	}
}

// enqueueDue enqueues a reconcile of each budget that is due.
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

// due returns the budgets that need a reconcile: of all budgets if this replica leads, else of those with recent requests.
// It drops workers of budgets that no longer exist and get no requests.
func (l *Ledger) due(leads bool, all []Budget) (out []Budget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	exists := make(map[string]bool, len(all))
	for _, b := range all {
		exists[b.Key] = true
		l.workerFor(b)
	}
	for key, w := range l.workers {
		w.mu.Lock()
		if !exists[key] && !w.admits.running && !w.lists.running && time.Since(w.lastRequest) > workerTTL { // nobody waits for its lines
			delete(l.workers, key)
		}
		// The leader keeps all ledgers; a follower only those that it may be called for again.
		if (leads || time.Since(w.lastRequest) < followerTTL) && w.needsReconcile() {
			w.podsChanged = false
			out = append(out, w.budget)
		}
		w.mu.Unlock()
	}
	return out
}

// needsReconcile reports whether the ledger may be out of date and no round is about to reconcile it, or none did for a
// while: a round that only admits lists nothing. The caller holds w.mu.
func (w *worker) needsReconcile() bool {
	since := time.Since(w.lastReconcile)
	busy := len(w.admits.queue) > 0 || w.lists.running
	if busy && since <= busyReconcilePeriod { // a round may reconcile it anyway
		return false
	}
	return w.podsChanged || w.reservations > 0 || since > idleReconcilePeriod
}
