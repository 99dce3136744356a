package quotametrics

import (
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/events"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// ReasonUnpromised is the reason of the Events on pods that were created while gpuslice was not asked.
const ReasonNotReviewed = "GPUSliceUnpromised"

// Bounds on what is told: an outage may leave thousands of such pods behind.
const (
	waiting     = 256 // pods that wait to be told; the others are met again in the next report
	rate, burst = 2.0, 10
	remember    = 4096 // pods that were told
	rememberFor = 24 * time.Hour
	writeWithin = 5 * time.Second
)

// strangers tells pods without a Promise that they count, and as what.
type unmanagedPods struct {
	client  kubernetes.Interface
	log     logr.Logger
	queue   chan ledger.Pod
	met     *cache.LRUExpireCache // by UID
	limiter flowcontrol.RateLimiter
}

func newUnmanagedPods(client kubernetes.Interface, log logr.Logger) *unmanagedPods {
	return &unmanagedPods{client: client, log: log, queue: make(chan ledger.Pod, waiting), met: cache.NewLRUExpireCache(remember),
		limiter: flowcontrol.NewTokenBucketRateLimiter(rate, burst)}
}

// meet queues those that were not met before, as far as there is room. It never waits.
func (s *unmanagedPods) enqueue(pods []ledger.Pod) {
	for _, p := range pods {
		if _, known := s.met.Get(p.UID); known {
			continue
		}
		select {
		case s.queue <- p:
			s.met.Add(p.UID, true, rememberFor)
		default:
			return
		}
	}
}

// tell writes an Event on each pod that is queued, until ctx ends.
func (s *unmanagedPods) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-s.queue:
			if s.limiter.Wait(ctx) != nil {
				return
			}
			s.write(ctx, p)
		}
	}
}

func (s *unmanagedPods) write(ctx context.Context, p ledger.Pod) {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Holding.Namespace, Name: p.Name, UID: types.UID(p.UID)}
	if err := events.Once(ctx, s.client, about, corev1.EventTypeWarning, ReasonNotReviewed, message(p.Holding)); err != nil {
		s.met.Remove(p.UID) // the next report brings it again
		s.log.V(1).Info("pod not told", "namespace", p.Holding.Namespace, "pod", p.Name, "error", err.Error())
	}
}

// sentence says what a stranger counts as, and what to do.
func message(h policies.Holding) string {
	var counts []string
	for _, d := range policies.Dimensions() {
		if n := d.Amount(h.Charge); n > 0 {
			counts = append(counts, d.Name+" "+d.Text(n))
		}
	}
	return "gpuslice was not asked when this pod was created, so it has no slice and counts in the quota as whole devices (" +
		strings.Join(counts, ", ") + "); delete it and let it be created again, and it gets its slice"
}
