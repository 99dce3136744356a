package quotametrics

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/guard/ticks"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// Options configure an Exporter. All are required.
type Options struct {
	Client     kubernetes.Interface
	Namespace  string                        // of the ledgers
	Ready      func() error                  // an error while the budgets are unknown
	Budgets    func() []ledger.Budget        // every budget
	Quotas     func() map[string]quota.Quota // by the budget's key
	Started    func()                        // called when Run starts to record Reports
	Registerer prometheus.Registerer
	Log        logr.Logger
}

// Exporter exports quota metrics. It is safe for concurrent use.
type Exporter struct {
	options   Options
	recorder  recorder
	unmanaged *unmanagedPods
	sweeper   sweeper
}

// New prepares an Exporter and registers its metrics, which have no series until Run.
func New(o Options) (*Exporter, error) {
	e := &Exporter{options: o, unmanaged: newUnmanagedPods(o.Client, o.Log),
		sweeper: sweeper{client: o.Client, namespace: o.Namespace, log: o.Log}}
	if err := o.Registerer.Register(newCollector(e)); err != nil {
		return nil, fmt.Errorf("register the quota metrics: %w", err)
	}
	return e, nil
}

// Report records the result of a reconcile. It never blocks; a replica that does not lead drops the report.
func (e *Exporter) Report(r ledger.Report) {
	if e.recorder.record(r, time.Now()) {
		e.unmanaged.enqueue(r.Unmanaged)
	}
}

// Run exports until ctx is done: while this replica leads.
func (e *Exporter) Run(ctx context.Context) error {
	e.recorder.reset(true)
	defer e.recorder.reset(false)
	e.options.Started()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { e.unmanaged.queue.Run(ctx, e.unmanaged.write) })
	for range ticks.After(ctx, sweepPeriod) {
		e.sweep(ctx)
	}
	return nil
}

// sweep drops budgets and namespaces that no longer exist, and removes their ledgers.
func (e *Exporter) sweep(ctx context.Context) {
	if e.options.Ready() != nil { // an unread policy must not look like a deleted budget
		return
	}
	budgets := e.options.Budgets()
	e.recorder.prune(budgets)
	if err := e.sweeper.sweep(ctx, budgets, time.Now()); err != nil && ctx.Err() == nil {
		e.options.Log.Error(err, "cannot remove unused ledgers", "retryAfter", sweepPeriod.String())
	}
}
