package observe

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/leader/nodelease"
)

// Options configure a Controller.
type Options struct {
	Client kubernetes.Interface
	// Nodes lists the cluster's nodes. The caller runs it.
	Nodes cache.SharedIndexInformer
	// Claims returns a ResourceClaim from a cache; nil: the cache has none of that name. Optional.
	Claims func(namespace, name string) *resourcev1.ResourceClaim
	// Keys returns the keys of trusted promises. nil, or Keys that sign nothing: every promise that can be read is trusted.
	Keys func() promise.Keys
	// Guards keeps where guards could not read the GPUs. Optional.
	Guards     GuardRecord
	Registerer prometheus.Registerer
	Log        logr.Logger
}

// Watch has the leader's watches.
type Watch struct {
	Pods   cache.SharedIndexInformer // of podcache.Pods, with the index podcache.ByNode
	Agents *nodelease.Follower
}

// timing is when a Controller reconciles a pod.
type timing struct {
	delay               time.Duration // after a change of the pod: pods that start change several times
	backoff, maxBackoff time.Duration // after a reconcile that failed
}

// defaultTiming returns the timing outside of tests.
func defaultTiming() timing {
	return timing{delay: 500 * time.Millisecond, backoff: time.Second, maxBackoff: 5 * time.Minute}
}

// Controller observes the pods of a cluster.
type Controller struct {
	options Options
	timing  timing
	gauges  *gauges
}

// New prepares a Controller and registers its metrics.
func New(o Options) (*Controller, error) {
	c := &Controller{options: o, timing: defaultTiming(), gauges: newGauges()}
	if err := o.Registerer.Register(c.gauges); err != nil {
		return nil, fmt.Errorf("register metrics of what is observed: %w", err)
	}
	return c, nil
}

// Run observes pods until ctx is done: while this replica leads. Two replicas that observe at once, as when the leader
// changes, do no harm: they write the same.
func (c *Controller) Run(ctx context.Context, from Watch) error {
	c.options.Log.Info("observing")
	defer c.options.Log.Info("no longer observing")
	c.gauges.reset(true)
	defer c.gauges.reset(false)
	s, err := newSession(c, from)
	if err != nil {
		return err
	}
	return s.run(ctx)
}
