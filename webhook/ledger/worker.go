package ledger

import (
	"context"
	"sync"
	"time"
)

const (
	// maxBatch bounds the requests of one round.
	maxBatch = 256
	// yieldTTL is how long after a conflict a replica lets others write first, each time for maxYield at most.
	yieldTTL = 5 * time.Second
	maxYield = 250 * time.Millisecond
)

// waiter is a request that waits for its answer, or, with reconcileOnly, a reconcile without a request.
type waiter struct {
	ctx           context.Context
	request       Request
	reconcileOnly bool
	cancel        func()      // if reconcileOnly: ends ctx
	answer        chan Answer // of capacity 1
}

// gone reports whether nobody waits any more, so that a reservation would be lost.
func (w *waiter) gone() bool { return w.ctx.Err() != nil }

// worker serves one budget in this replica. Its goroutine runs only while requests wait.
type worker struct {
	ledger *Ledger
	key    string

	mu            sync.Mutex
	budget        Budget // of the latest request
	queue         []*waiter
	running       bool
	lastRequest   time.Time
	lastReconcile time.Time // by a list or a view
	podsChanged   bool      // since lastReconcile
	reservations  int       // in the ledger that was last read

	// Used by the goroutine alone:
	last         storedLedger // last read or written
	lastList     time.Time
	lastConflict time.Time
	writeTook    time.Duration // the last write of the last batch; 0: it wrote nothing
}

// enqueue adds w to the queue of the budget's worker. It reports whether the Ledger is open.
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

// workerFor returns the budget's worker. The caller holds l.mu.
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
		if w.serve(w.ledger.ctx, batch) > 1 { // more requests are likely on their way: one write for them all
			sleep(w.ledger.ctx, w.pause())
		}
	}
}

// pause is the time between a batch and the next. Where replicas write the same ledger, the one that has written last would be
// the first again: it has nothing to read. So it leaves the others the time to read and to write.
func (w *worker) pause() time.Duration {
	pause := w.ledger.options.BatchDelay
	if time.Since(w.lastConflict) < yieldTTL {
		pause = max(pause, min(2*w.writeTook, maxYield))
	}
	return pause
}

// nextBatch returns at most maxBatch waiters. If it returns none, the goroutine ends.
func (w *worker) nextBatch() []*waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	batch := w.pop(maxBatch)
	if len(batch) == 0 || w.ledger.ctx.Err() != nil {
		w.running = false
		return nil
	}
	return batch
}

// take returns at most n of those that wait.
func (w *worker) take(n int) []*waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pop(n)
}

// pop takes at most n waiters from the queue. The caller holds w.mu.
func (w *worker) pop(n int) []*waiter {
	n = min(n, len(w.queue))
	batch := w.queue[:n:n]
	w.queue = w.queue[n:]
	w.ledger.counts.requests.Add(int64(n))
	return batch
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// backOff returns the wait before an attempt: 2 ms, doubled with each attempt up to the given number of times, with a jitter
// of half to either side.
func (l *Ledger) backOff(attempt, doublings int) time.Duration {
	spread := 0.5 + l.options.Random()
	return time.Duration(float64(2*time.Millisecond<<min(attempt, doublings)) * spread)
}
