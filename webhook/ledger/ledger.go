package ledger

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// Options configure a Ledger. Store and Lister are required.
type Options struct {
	Store  Store
	Lister Lister
	// Watcher spares lists. Optional.
	Watcher Watcher
	// Shown returns a ledger as a watch last showed it, which may be late; false: it has shown none. It spares reads. Optional.
	Shown func(name string) (Object, bool)

	// Budgets returns every budget, and Leads reports whether this replica reconciles all of them; the others reconcile those
	// with recent requests. Optional: without a leader more lists are made, and nothing else changes.
	Budgets func() []Budget
	Leads   func() bool
	// Gone are pods that were seen to end. Optional: it releases reservations sooner, and nothing else changes.
	Gone *GonePods
	// Report is called with the result of each reconcile. It must not block. Optional.
	Report func(Report)

	// Bounds returns the earliest and the latest time that the clock may show by which all replicas date reservations and
	// lists: the API server's. Default: the local clock, twice.
	Bounds func() (earliest, latest time.Time)
	Random func() float64 // in [0, 1), jitter of retries; default rand.Float64

	CallTimeout          time.Duration // of one call to Store; default 4 s
	ListTimeout          time.Duration // of one call to Lister; default 6 s, of the 8 that a request waits
	BatchDelay           time.Duration // at least this long after a batch of several requests, before the next; default 10 ms
	CheckInterval        time.Duration // between two checks which budgets need a reconcile; default 5 s
	MaxStaleReservations int           // of one namespace; default 256
}

// Ledger makes reservations in budgets. It is safe for concurrent use.
type Ledger struct {
	options Options
	counts  counters
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	workers map[string]*worker
	closed  bool
}

// New returns a Ledger. Its workers start on demand and end by themselves; Close ends those that run.
func New(o Options) *Ledger {
	if o.Bounds == nil {
		o.Bounds = func() (earliest, latest time.Time) { now := time.Now(); return now, now }
	}
	if o.Shown == nil {
		o.Shown = func(string) (Object, bool) { return Object{}, false }
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	o.CallTimeout = cmp.Or(o.CallTimeout, 4*time.Second)
	o.ListTimeout = cmp.Or(o.ListTimeout, 6*time.Second)
	o.BatchDelay = cmp.Or(o.BatchDelay, 10*time.Millisecond)
	o.CheckInterval = cmp.Or(o.CheckInterval, 5*time.Second)
	o.MaxStaleReservations = cmp.Or(o.MaxStaleReservations, 256)
	ctx, cancel := context.WithCancel(context.Background())
	return &Ledger{options: o, ctx: ctx, cancel: cancel, workers: make(map[string]*worker)}
}

// Close ends the workers and waits for them. Waiting requests are answered Busy.
func (l *Ledger) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.running.Wait()
}

// Reserve writes a reservation for the pod, or answers why not. It answers before the request's deadline and when ctx ends. A
// pod without limits or without a charge is admitted without a reservation.
func (l *Ledger) Reserve(ctx context.Context, r Request) Answer {
	if len(r.Quota.Limits) == 0 || r.Holding.Charge == (quota.Charge{}) {
		return Answer{Decision: Admitted}
	}
	if r.PodUID == "" { // a ledger with such a reservation cannot be read
		return busyAnswer(time.Second, "the review has a pod without a UID")
	}
	if r.Deadline.IsZero() {
		r.Deadline = time.Now().Add(DefaultTimeout)
	}
	ctx, cancel := context.WithDeadline(ctx, r.Deadline)
	defer cancel()
	w := &waiter{ctx: ctx, request: r, answer: make(chan Answer, 1)}
	if !l.enqueue(r.Budget, w) {
		return busyAnswer(time.Second, "this replica is stopping")
	}
	select {
	case a := <-w.answer:
		return a
	case <-ctx.Done():
		return busyAnswer(5*time.Second, "the quota could not be read and written in time")
	case <-l.ctx.Done():
		return busyAnswer(time.Second, "this replica is stopping")
	}
}

// bounds returns the earliest and the latest time that it may be, in the precision that is stored. A reservation is dated
// late and a list early, so that whatever is not known exactly keeps a reservation longer.
func (l *Ledger) bounds() (earliest, latest time.Time) {
	earliest, latest = l.options.Bounds()
	return earliest.UTC().Truncate(time.Millisecond), latest.UTC().Truncate(time.Millisecond)
}

// Counts are the calls of a Ledger since it was created.
type Counts struct {
	Requests, Batches, Gets, Writes, Lists int64
	Views                                  int64 // rounds that rest on watches
	Conflicts                              int64 // writes that failed because another replica wrote first
	Unanswered                             int64 // writes without an answer
}

type counters struct {
	requests, batches, gets, writes, lists, views, conflicts, unanswered atomic.Int64
}

func (c *counters) failed(err error) {
	switch {
	case errors.Is(err, ErrUnknown):
		c.unanswered.Add(1)
	case errors.Is(err, ErrConflict), errors.Is(err, ErrExists), errors.Is(err, ErrNotFound):
		c.conflicts.Add(1)
	}
}

// Counts returns the counts so far, for metrics.
func (l *Ledger) Counts() Counts {
	c := &l.counts
	return Counts{
		Requests: c.requests.Load(), Batches: c.batches.Load(), Gets: c.gets.Load(), Writes: c.writes.Load(),
		Lists: c.lists.Load(), Views: c.views.Load(), Conflicts: c.conflicts.Load(), Unanswered: c.unanswered.Load(),
	}
}
