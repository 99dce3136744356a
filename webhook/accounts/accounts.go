package accounts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// Options are what Accounts are made of. All are required.
type Options struct {
	Client     kubernetes.Interface
	Namespace  string                           // of the ledgers
	Ready      func() error                     // an error: which budgets there are is not known yet
	Budgets    func() []ledger.Budget           // all there are
	Quotas     func() map[string]policies.Quota // what they limit, by their keys
	Begun      func()                           // a term has begun, and Reports are taken
	Registerer prometheus.Registerer
	Log        logr.Logger
}

// Accounts are the quotas' books. They are safe for concurrent use.
type Accounts struct {
	options   Options
	book      book
	strangers *strangers
	sweeper   sweeper
}

// New prepares Accounts and registers their metrics, which have no series until Run.
func New(o Options) (*Accounts, error) {
	a := &Accounts{options: o, strangers: newStrangers(o.Client, o.Log), sweeper: sweeper{client: o.Client, namespace: o.Namespace, log: o.Log}}
	if err := o.Registerer.Register(newCollector(a)); err != nil {
		return nil, fmt.Errorf("register the metrics of quotas: %w", err)
	}
	return a, nil
}

// Report notes what a reconcile found. It never waits; a replica that does not lead forgets it at once.
func (a *Accounts) Report(r ledger.Report) {
	if a.book.note(r, time.Now()) {
		a.strangers.meet(r.Unpromised)
	}
}

// Run keeps the books until ctx ends: while this replica leads.
func (a *Accounts) Run(ctx context.Context) error {
	a.book.open()
	defer a.book.close()
	a.options.Begun()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { a.strangers.tell(ctx) })
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			a.sweep(ctx)
		}
	}
}

// sweep forgets what is no more, and removes its ledgers.
func (a *Accounts) sweep(ctx context.Context) {
	if a.options.Ready() != nil {
		return
	}
	budgets := a.options.Budgets()
	a.book.prune(budgets)
	if err := a.sweeper.sweep(ctx, budgets, time.Now()); err != nil && ctx.Err() == nil {
		a.options.Log.Error(err, "ledgers without a budget not removed", "retryAfter", sweepEvery.String())
	}
}
