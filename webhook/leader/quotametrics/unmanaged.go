package quotametrics

import (
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/events"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// ReasonNotReviewed is the reason of the Events on pods that were created without a review.
const ReasonNotReviewed = "GPUSliceNotReviewed"

// Bounds on the Events: an outage may leave thousands of such pods behind.
const (
	queueSize    = 256 // the pods beyond it are queued by the next report
	queueQPS     = 2.0
	queueBurst   = 10
	podCache     = 4096
	podTTL       = 24 * time.Hour
	writeTimeout = 5 * time.Second
)

// unmanagedPods writes Events on pods without a promise, with their charge in the quota.
type unmanagedPods struct {
	client kubernetes.Interface
	log    logr.Logger
	queue  *events.Queue[ledger.Pod] // by UID
}

func newUnmanagedPods(client kubernetes.Interface, log logr.Logger) *unmanagedPods {
	return &unmanagedPods{client: client, log: log, queue: events.NewQueue(events.QueueOptions[ledger.Pod]{
		Size: queueSize, QPS: queueQPS, Burst: queueBurst, Remember: podCache, Quiet: podTTL,
	})}
}

// enqueue queues the pods that have no Event yet, until the queue is full. It never blocks.
func (u *unmanagedPods) enqueue(pods []ledger.Pod) {
	for _, p := range pods {
		if u.queue.Add(p.UID, p) == events.Dropped {
			return
		}
	}
}

// write writes the Event on a queued pod.
func (u *unmanagedPods) write(ctx context.Context, p ledger.Pod) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := events.Once(ctx, u.client, events.Event{
		Object: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Holding.Namespace, Name: p.Name, UID: types.UID(p.UID)},
		Type:   corev1.EventTypeWarning, Reason: ReasonNotReviewed, Message: message(p.Holding),
	})
	if err != nil {
		u.queue.Forget(p.UID) // so that the next report queues it again
		u.log.V(1).Info("cannot write Event", "object", "Pod "+p.Holding.Namespace+"/"+p.Name, "error", err.Error())
	}
}

// message is the text of an Event: the pod's charge, and the remedy.
func message(h quota.Holding) string {
	var counts []string
	for _, d := range quota.Dimensions() {
		if n := d.Amount(h.Charge); n > 0 {
			counts = append(counts, d.Name+" "+d.Text(n))
		}
	}
	reviewed := "this pod"
	if h.MemoryUnknown {
		reviewed = "what this pod claims"
	}
	return "gpuslice did not review " + reviewed + " when it was created, so it has no slice and counts in the quota as whole devices (" +
		strings.Join(counts, ", ") + "); delete it and let it be created again, and it gets its slice"
}
