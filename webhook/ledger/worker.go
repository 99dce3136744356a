package ledger

import (
	"context"
	"sync"
	"time"
)

// maxBatch bounds the requests that are decided on one copy.
const maxBatch = 256

// waiter is a request that waits for its answer, or a pass: a reconcile that nobody asked for by a request.
type waiter struct {
	ctx           context.Context
	request       Request
	reconcileOnly bool
	cancel        func()      // of a pass: ends ctx
	answer        chan Answer // of capacity 1
}

// gone says that nobody waits any more: room that were reserved for it would be lost.
func (w *waiter) gone() bool { return w.ctx.Err() != nil }

// worker serves one budget in this replica. Its goroutine runs only while there is something to do.
type worker struct {
	ledger *Ledger
	key    string

	mu            sync.Mutex
	budget        Budget // as last named
	queue         []*waiter
	running       bool
	lastRequest   time.Time // when it was last asked
	lastReconcile time.Time // when the last reconcile ended
	podsChanged   bool      // pods have, since
	reservations  int       // reservations, as last seen

	last storedLedger // what was last read or written; of the goroutine alone
}

// enqueue hands w to the budget's worker. It is false when the Ledger is closed.
func (l *Ledger) enqueue(b Budget, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	worker := l.workerFor(b)
	worker.mu.Lock()
	defer worker.mu.Unlock()
	worker.budget = b
	if !w.reconcileOnly {
		worker.lastRequest = time.Now()
	}
	worker.queue = append(worker.queue, w)
	if !worker.running {
		worker.running = true
		l.running.Go(worker.run)
	}
	return true
}

// workerFor returns the budget's worker. l.mu is held.
func (l *Ledger) workerFor(b Budget) *worker {
	w, ok := l.workers[b.Key]
	if !ok {
		w = &worker{ledger: l, key: b.Key, budget: b}
		l.workers[b.Key] = w
	}
	return w
}

// run serves batches until nobody waits.
func (w *worker) run() {
	for {
		batch := w.nextBatch()
		if len(batch) == 0 {
			return
		}
		w.serve(w.ledger.ctx, batch)
		if len(batch) > 1 { // more are on their way: one write for them all
			sleep(w.ledger.ctx, w.ledger.options.BatchDelay)
		}
	}
}

// take returns those who wait, at most maxBatch. None: the goroutine ends.
func (w *worker) nextBatch() []*waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.queue), maxBatch)
	batch := w.queue[:n:n]
	w.queue = w.queue[n:]
	if n == 0 || w.ledger.ctx.Err() != nil {
		w.running = false
		return nil
	}
	return batch
}

// pause waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// backOff is how long to wait before the given try: 2 ms doubled each time, up to the given number of times, spread by
// half to either side.
func (l *Ledger) backOff(try, doublings int) time.Duration {
	spread := 0.5 + l.options.Random()
	return time.Duration(float64(2*time.Millisecond<<min(try, doublings)) * spread)
}
