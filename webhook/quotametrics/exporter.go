package quotametrics

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
	Started    func()                           // a term has begun, and Reports are taken
	Registerer prometheus.Registerer
	Log        logr.Logger
}

// Accounts are the quotas' books. They are safe for concurrent use.
type Exporter struct {
	options   Options
	recorder  recorder
	unmanaged *unmanagedPods
	sweeper   sweeper
}

// New prepares Accounts and registers their metrics, which have no series until Run.
func New(o Options) (*Exporter, error) {
	a := &Exporter{options: o, unmanaged: newUnmanagedPods(o.Client, o.Log), sweeper: sweeper{client: o.Client, namespace: o.Namespace, log: o.Log}}
	if err := o.Registerer.Register(newCollector(a)); err != nil {
		return nil, fmt.Errorf("register the metrics of quotas: %w", err)
	}
	return a, nil
}

// Report notes what a reconcile found. It never waits; a replica that does not lead forgets it at once.
func (a *Exporter) Report(r ledger.Report) {
	if a.recorder.record(r, time.Now()) {
		a.unmanaged.enqueue(r.Unmanaged)
	}
}

// Run keeps the books until ctx ends: while this replica leads.
func (a *Exporter) Run(ctx context.Context) error {
	a.recorder.start()
	defer a.recorder.stop()
	a.options.Started()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { a.unmanaged.run(ctx) })
	ticker := time.NewTicker(sweepPeriod)
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
func (a *Exporter) sweep(ctx context.Context) {
	if a.options.Ready() != nil {
		return
	}
	budgets := a.options.Budgets()
	a.recorder.prune(budgets)
	if err := a.sweeper.sweep(ctx, budgets, time.Now()); err != nil && ctx.Err() == nil {
		a.options.Log.Error(err, "ledgers without a budget not removed", "retryAfter", sweepPeriod.String())
	}
}
