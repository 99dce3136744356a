package ledger

import (
	"context"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/guard/ticks"
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

// canceled reports whether nobody waits any more, so that a reservation would be lost.
func (w *waiter) canceled() bool { return w.ctx.Err() != nil }

// needsRead reports whether no conflict would show that the ledger is old: a dry run writes nothing, nor does a reconcile that finds
// nothing, which is for recent reservations of others.
func (w *waiter) needsRead() bool { return w.reconcileOnly || w.request.DryRun }

// worker serves one budget in this replica. A list of thousands of pods takes seconds: requests that need one wait in a line apart
// from those that do not. The lines take turns: a line reads, decides, writes and answers in its turn, and waits outside of it. The line
// "lists" also reads its lists outside of it.
type worker struct {
	ledger *Ledger
	key    string
	admits line // of requests that may not need a list: all, at first
	lists  line // of those that do

	mu            sync.Mutex
	budget        Budget // of the latest request
	lastRequest   time.Time
	lastReconcile time.Time // by a list or a view
	podsChanged   bool      // since lastReconcile
	reservations  int       // in the ledger that was last read

	// Used by the line whose turn it is. The channel of capacity 1 is full in a turn:
	turn     chan struct{}
	last     storedLedger // last read, written or shown
	stale    bool         // last may differ from the stored object: it is read before it is used
	lastList time.Time
	// counted is what this replica last listed or watched, and countedAt when.
	counted   []Namespace
	countedAt time.Time
}

// line is a queue of waiters. Its goroutine runs only while some wait.
type line struct {
	*worker

	// Under worker.mu:
	queue   []*waiter
	running bool

	// Used by the goroutine alone:
	lastConflict time.Time
	writeTook    time.Duration // the last write of the last batch; 0: it wrote nothing
}

// beginTurn waits for the line's turn, first come, first served.
func (w *worker) beginTurn() { w.turn <- struct{}{} }
func (w *worker) endTurn()   { <-w.turn }

// enqueue adds w to the waiters of the budget's worker. It reports whether the Ledger is open.
func (l *Ledger) enqueue(b Budget, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	worker := l.workerFor(b)
	worker.mu.Lock()
	defer worker.mu.Unlock()
	if !w.reconcileOnly {
		worker.lastRequest = time.Now()
	}
	worker.admits.add(w)
	l.counts.requests.Add(1)
	return true
}

// workerFor returns the budget's worker, which holds from now on which namespaces share the budget. The caller holds l.mu.
func (l *Ledger) workerFor(b Budget) *worker {
	w, ok := l.workers[b.Key]
	if !ok {
		w = &worker{ledger: l, key: b.Key, turn: make(chan struct{}, 1)}
		w.admits.worker, w.lists.worker = w, w
		l.workers[b.Key] = w
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget = b
	return w
}

// add adds waiters, and starts the goroutine. The caller holds w.mu, and either l.mu or is a goroutine of Ledger.running.
func (n *line) add(waiting ...*waiter) {
	n.queue = append(n.queue, waiting...)
	if !n.running {
		n.running = true
		n.ledger.running.Go(n.run)
	}
}

// moveToLists moves waiters to the line of those that need a list.
func (w *worker) moveToLists(waiting []*waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists.add(waiting...)
}

// run serves batches until nobody waits.
func (n *line) run() {
	for {
		batch := n.nextBatch()
		if len(batch) == 0 {
			return
		}
		if n.serve(n.ledger.ctx, batch) { // one write for them all
			ticks.Sleep(n.ledger.ctx, n.pause())
		}
	}
}

// pause is the time between a batch and the next. Where replicas write the same ledger, the one that has written last would be
// the first again: it has nothing to read. So it leaves the others the time to read and to write.
func (n *line) pause() time.Duration {
	pause := n.ledger.options.BatchDelay
	if n.contended() {
		pause = max(pause, min(2*n.writeTook, maxYield))
	}
	return pause
}

// contended reports whether other replicas write the same ledger.
func (n *line) contended() bool { return time.Since(n.lastConflict) < yieldTTL }

// nextBatch returns at most maxBatch waiters. If it returns none, the goroutine ends.
func (n *line) nextBatch() []*waiter {
	n.mu.Lock()
	defer n.mu.Unlock()
	batch := n.pop(maxBatch)
	if len(batch) == 0 || n.ledger.ctx.Err() != nil {
		n.running = false
		return nil
	}
	return batch
}

// take returns at most that many waiters.
func (n *line) take(most int) []*waiter {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pop(most)
}

// pop takes at most that many waiters from the queue. The caller holds n.mu.
func (n *line) pop(most int) []*waiter {
	most = min(most, len(n.queue))
	batch := n.queue[:most:most]
	n.queue = n.queue[most:]
	return batch
}

// backOff returns the wait before an attempt: 2 ms, doubled with each attempt up to the given number of times, with a jitter
// of half to either side.
func (l *Ledger) backOff(attempt, doublings int) time.Duration {
	spread := 0.5 + l.options.Random()
	return time.Duration(float64(2*time.Millisecond<<min(attempt, doublings)) * spread)
}
