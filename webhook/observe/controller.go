package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// LeaseName is the Lease that the observing replica holds.
const LeaseName = "gpuslice-observer"

// Options are what a Controller is made of.
type Options struct {
	Client kubernetes.Interface
	// Nodes knows the cluster's nodes with their labels. Somebody else runs it; it is only read.
	Nodes cache.SharedIndexInformer
	// Namespace is that of the Lease.
	Namespace string
	// Identity is this replica's, and no other's.
	Identity string
	// Registerer gets the metric.
	Registerer prometheus.Registerer
	Log        logr.Logger
}

// timing is how long a Controller takes for what it does.
type timing struct {
	lease, renew, retry time.Duration // of the Lease: held for, given up after, asked for every
	settle              time.Duration // from a change of a pod to looking at it: pods that start change several times
	backoff, most       time.Duration // after a look that failed
}

// patient are the usual times of leader election: a replica that dies is followed within some 15 s, and one that stops
// hands over at once.
func patient() timing {
	return timing{
		lease: 15 * time.Second, renew: 10 * time.Second, retry: 2 * time.Second,
		settle: 500 * time.Millisecond, backoff: time.Second, most: 5 * time.Minute,
	}
}

// Controller observes the pods of a cluster while it holds the Lease.
type Controller struct {
	options Options
	timing  timing
	tally   *tally
}

// New prepares a Controller and registers its metric.
func New(o Options) (*Controller, error) {
	c := &Controller{options: o, timing: patient(), tally: newTally()}
	if err := o.Registerer.Register(c.tally); err != nil {
		return nil, fmt.Errorf("register the metric of enforcement: %w", err)
	}
	return c, nil
}

// Run stands for election, observes whenever this replica is elected, and returns nil when ctx ends. Two replicas that
// both observe for a moment, as when a Lease is handed over, do no harm: they write the same.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, c.options.Log)
	for ctx.Err() == nil {
		if err := c.stand(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stand stands for one election, and returns when the term that may follow is over.
func (c *Controller) stand(ctx context.Context) error {
	elected := make(chan context.Context)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: LeaseName,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.options.Namespace, Name: LeaseName},
			Client:     c.options.Client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.options.Identity},
		},
		LeaseDuration: c.timing.lease, RenewDeadline: c.timing.renew, RetryPeriod: c.timing.retry,
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
		return c.observe(term)
	case <-over:
		return nil
	}
}

// observe works until the term ends.
func (c *Controller) observe(ctx context.Context) error {
	c.options.Log.Info("observing", "identity", c.options.Identity)
	defer c.options.Log.Info("no longer observing", "identity", c.options.Identity)
	c.tally.open()
	defer c.tally.close()
	t, err := newTerm(c)
	if err != nil {
		return err
	}
	return t.run(ctx)
}
