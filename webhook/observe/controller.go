package observe

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
)

// Options are what a Controller is made of.
type Options struct {
	Client kubernetes.Interface
	// Nodes knows the cluster's nodes with their labels. Somebody else runs it; it is only read.
	Nodes cache.SharedIndexInformer
	// Keys tell which Promises to trust. nil, and Keys that sign nothing: every one that can be read.
	Keys func() policies.Keys
	// PodLeft is told of each pod that ended or was deleted. Of pods without a promise it is told when they are deleted.
	// nil: nobody wants to know.
	PodGone func(namespace string, uid types.UID)
	// Registerer gets the metric.
	Registerer prometheus.Registerer
	Log        logr.Logger
}

// timing is how long a Controller takes for what it does.
type timing struct {
	delay               time.Duration // from a change of a pod to looking at it: pods that start change several times
	backoff, maxBackoff time.Duration // after a look that failed
}

// patient are the usual times.
func defaultTiming() timing {
	return timing{delay: 500 * time.Millisecond, backoff: time.Second, maxBackoff: 5 * time.Minute}
}

// Controller observes the pods of a cluster.
type Controller struct {
	options Options
	timing  timing
	tally   *podCounter
}

// New prepares a Controller and registers its metric.
func New(o Options) (*Controller, error) {
	c := &Controller{options: o, timing: defaultTiming(), tally: newPodCounter()}
	if err := o.Registerer.Register(c.tally); err != nil {
		return nil, fmt.Errorf("register the metric of enforcement: %w", err)
	}
	return c, nil
}

// Run observes until ctx ends: while this replica leads. Two replicas that both observe for a moment, as when a Lease is
// handed over, do no harm: they write the same.
func (c *Controller) Run(ctx context.Context) error {
	c.options.Log.Info("observing")
	defer c.options.Log.Info("no longer observing")
	c.tally.start()
	defer c.tally.stop()
	t, err := newSession(c)
	if err != nil {
		return err
	}
	return t.run(ctx)
}
