package ledger

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/policies"
)

// Options are what a Ledger works with. Store and Lister are required.
type Options struct {
	Store  Store
	Lister Lister

	// Budgets are all there are, and Leads says that this replica is to look after them; the others look after those
	// they were asked about. nil: there is no leader. It saves lists, and nothing depends on it.
	Budgets func() []Budget
	Leads   func() bool
	// Departed are pods that were seen to end; nil: nobody looks. It gives room back sooner, and nothing depends on it.
	Gone *GonePods
	// Report is told what each reconcile found. It must not block.
	Report func(Report)

	Now    func() time.Time // stamps reservations; default time.Now
	Random func() float64   // in [0, 1), spreads what is tried again; default rand.Float64

	CallTimeout          time.Duration // of one call to Store or Lister; default 4 s
	BatchDelay           time.Duration // wait between two batches of which the first had several requests; default 10 ms
	CheckInterval        time.Duration // between two looks at which budgets need a reconcile; default 5 s
	MaxStaleReservations int           // reservations that may wait in vain in one namespace; default 256
}

// Ledger reserves room in budgets. It is safe for concurrent use.
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

// New returns a Ledger. Its workers start when they are needed and end by themselves; Close ends those that run.
func New(o Options) *Ledger {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	o.CallTimeout = orDefault(o.CallTimeout, 4*time.Second)
	o.BatchDelay = orDefault(o.BatchDelay, 10*time.Millisecond)
	o.CheckInterval = orDefault(o.CheckInterval, 5*time.Second)
	o.MaxStaleReservations = orDefault(o.MaxStaleReservations, 256)
	ctx, cancel := context.WithCancel(context.Background())
	return &Ledger{options: o, ctx: ctx, cancel: cancel, workers: make(map[string]*worker)}
}

func orDefault[N int | time.Duration](n, otherwise N) N {
	if n == 0 {
		return otherwise
	}
	return n
}

// Close ends what runs and waits for it. Requests that wait are answered busy.
func (l *Ledger) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.running.Wait()
}

// Admit reserves room for the pod, or says why not. It answers before the request's deadline and when ctx ends. What is
// neither limited nor holds anything is admitted without a trace.
func (l *Ledger) Reserve(ctx context.Context, r Request) Answer {
	if len(r.Quota.Limits) == 0 || r.Holding.Charge == (policies.Charge{}) {
		return Answer{Decision: Admitted}
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
	case <-ctx.Done(): // it has waited long enough already
		return busyAnswer(5*time.Second, "the quota could not be read and written in time")
	case <-l.ctx.Done():
		return busyAnswer(time.Second, "this replica is stopping")
	}
}

// stamp is the time for reservations, in the precision that is stored.
func (l *Ledger) stamp() time.Time { return l.options.Now().UTC().Truncate(time.Millisecond) }
