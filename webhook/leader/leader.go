// Package leader chooses the one replica that does what is enough to be done once: observing pods, looking after quotas
// that nobody asks about, and the like. Nothing that is safe depends on there being one leader only: a Lease does not
// keep a replica that was paused from going on for a moment.
package leader

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// LeaseName is the Lease that the leader holds.
const LeaseName = "gpuslice-leader"

// Election is one replica's part in the choice.
type Election struct {
	Client    kubernetes.Interface
	Namespace string // of the Lease
	Identity  string // this replica's, and no other's
	Log       logr.Logger

	// Lease is held for so long without being renewed, Renew is when a leader that cannot renew it gives up, and Retry is
	// between two attempts. Zero: 15 s, 10 s and 2 s, so that a replica that dies is followed within some 15 s; one that
	// stops hands over at once.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	leads atomic.Bool
}

// Term is work for the time that this replica leads. It returns when its context ends; an error ends the replica.
type Runnable func(context.Context) error

// Leads says whether this replica leads.
func (e *Election) Leads() bool { return e.leads.Load() }

// Run stands for election again and again, does the terms' work whenever this replica is elected, and returns nil when
// ctx ends.
func (e *Election) Run(ctx context.Context, terms ...Runnable) error {
	ctx = klog.NewContext(ctx, e.Log)
	for ctx.Err() == nil {
		if err := e.runOnce(ctx, terms); err != nil {
			return err
		}
	}
	return nil
}

// stand stands for one election, and returns when the term that may follow is over.
func (e *Election) runOnce(ctx context.Context, terms []Runnable) error {
	elected := make(chan context.Context)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: LeaseName,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: LeaseName},
			Client:     e.Client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity},
		},
		LeaseDuration: orDefault(e.LeaseDuration, 15*time.Second), RenewDeadline: orDefault(e.RenewDeadline, 10*time.Second), RetryPeriod: orDefault(e.RetryPeriod, 2*time.Second),
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(term context.Context) {
				select {
				case elected <- term:
				case <-term.Done():
				}
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("stand for election: %w", err)
	}
	ctx, resign := context.WithCancel(ctx)
	over := make(chan struct{})
	var election sync.WaitGroup
	defer election.Wait()
	defer resign()
	election.Go(func() { defer close(over); elector.Run(ctx) })
	select {
	case term := <-elected:
		return e.lead(term, terms)
	case <-over:
		return nil
	}
}

// lead does the terms' work side by side until the term ends. The first that fails ends it for all.
func (e *Election) lead(ctx context.Context, terms []Runnable) error {
	e.Log.Info("leading", "identity", e.Identity)
	e.leads.Store(true)
	defer e.Log.Info("no longer leading", "identity", e.Identity)
	defer e.leads.Store(false)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var working sync.WaitGroup
	for _, work := range terms {
		working.Go(func() {
			if err := work(ctx); err != nil {
				end(fmt.Errorf("as the leader: %w", err))
			}
		})
	}
	<-ctx.Done()
	working.Wait()
	if err := context.Cause(ctx); err != nil && ctx.Err() != err {
		return err
	}
	return nil
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}
