// Package leader elects the one replica that does the work of which one copy is enough: observing pods, reconciling the
// budgets without requests, and the like. Safety never depends on a single leader: a Lease does not keep a replica
// that was paused from going on for a moment.
package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/gpuslice/gpuslice/guard/ticks"
)

// LeaseName is the name of the leader's Lease.
const LeaseName = "gpuslice-leader"

// Election is one replica's candidacy.
type Election struct {
	Client    kubernetes.Interface
	Namespace string // of the Lease
	Identity  string // unique among replicas
	Log       logr.Logger

	// LeaseDuration, RenewDeadline and RetryPeriod are as in client-go's leader election. Their defaults of 15 s, 10 s and
	// 2 s replace a replica that dies within some 15 s; one that stops releases its Lease at once.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	leads atomic.Bool
}

// errPanicked makes the leader resign, and does not stop the replica: it serves reviews in the same process.
var errPanicked = errors.New("panic")

// Runnable is work of the leader. It returns when its context is done; an error stops the replica, and after a panic the leader resigns.
type Runnable func(context.Context) error

// Every calls work at once, and then once in each period, until ctx is done.
func Every(ctx context.Context, period time.Duration, work func(context.Context)) {
	for range ticks.Every(ctx, period) {
		work(ctx)
	}
}

// Leads reports whether this replica leads.
func (e *Election) Leads() bool { return e.leads.Load() }

// Run takes part in elections until ctx is done. Whenever this replica is elected, it runs the runnables that begin makes:
// they last as long as one lead, such as an informer, which cannot run twice. It returns nil when ctx is done.
func (e *Election) Run(ctx context.Context, begin func() ([]Runnable, error)) error {
	ctx = klog.NewContext(ctx, e.Log)
	for ctx.Err() == nil {
		if err := e.runOnce(ctx, begin); err != nil {
			return err
		}
	}
	return nil
}

// runOnce takes part in one election. It returns when this replica has lost its Lease, or could not get it.
func (e *Election) runOnce(ctx context.Context, begin func() ([]Runnable, error)) error {
	elected := make(chan context.Context)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: LeaseName,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: LeaseName},
			Client:     e.Client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity},
		},
		LeaseDuration:   cmp.Or(e.LeaseDuration, 15*time.Second),
		RenewDeadline:   cmp.Or(e.RenewDeadline, 10*time.Second),
		RetryPeriod:     e.retryPeriod(),
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				select {
				case elected <- leading:
				case <-leading.Done():
				}
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("prepare the leader election: %w", err)
	}
	ctx, resign := context.WithCancel(ctx)
	over := make(chan struct{})
	var election sync.WaitGroup
	defer election.Wait()
	defer resign()
	election.Go(func() { defer close(over); elector.Run(ctx) })
	select {
	case leading := <-elected:
		runnables, err := begin()
		if err != nil {
			return fmt.Errorf("begin to lead: %w", err)
		}
		return e.lead(leading, runnables)
	case <-over:
		return nil
	}
}

// lead runs the runnables side by side until ctx is done. The first that fails stops the others.
func (e *Election) lead(ctx context.Context, runnables []Runnable) error {
	e.Log.Info("leading", "identity", e.Identity)
	e.leads.Store(true)
	defer e.Log.Info("no longer leading", "identity", e.Identity)
	defer e.leads.Store(false)
	group, running := errgroup.WithContext(ctx)
	for _, run := range runnables {
		group.Go(func() error {
			// An error after the end of the lead is its consequence, not a failure.
			if err := e.guarded(running, run); err != nil && running.Err() == nil {
				return fmt.Errorf("as the leader: %w", err)
			}
			return nil
		})
	}
	switch err := group.Wait(); {
	case errors.Is(err, errPanicked):
		ticks.Sleep(ctx, e.retryPeriod()) // a runnable that panics at once must not have replicas resign without end
		return nil
	case err != nil:
		return err
	}
	<-ctx.Done()
	return nil
}

// guarded runs one runnable. A panic is logged and becomes an error.
func (e *Election) guarded(ctx context.Context, run Runnable) (err error) {
	defer func() {
		if p := recover(); p != nil {
			e.Log.Error(fmt.Errorf("panic: %v", p), "a leader runnable panicked; resigning", "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	return run(ctx)
}

func (e *Election) retryPeriod() time.Duration { return cmp.Or(e.RetryPeriod, 2*time.Second) }
