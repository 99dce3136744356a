package events

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
)

// ReasonDenied is the reason of the Events on the owners of a denied pod.
const ReasonDenied = "GPUSliceDenied"

// Bounds on the Events. A controller tries again and again; a tenant may make owners up.
const (
	ownerQuiet = 10 * time.Second // between two Events on one owner

	namespaceQPS   = 0.5 // in one namespace, so that none takes the whole rate
	namespaceBurst = 10
	namespaceCache = 1024
	namespaceTTL   = time.Hour

	writeTimeout = 5 * time.Second

	queueSize  = 256
	queueQPS   = 5.0
	queueBurst = 20
)

// Denials writes Events on the owners of denied pods. It is safe for concurrent use.
type Denials struct {
	client     kubernetes.Interface
	log        logr.Logger
	owners     *Owners
	queue      *Queue[denial]
	namespaces *cache.LRUExpireCache // rate limiters
	counts     *prometheus.CounterVec
}

// denial is an Event to be written on a pod's owners.
type denial struct {
	pod     metav1.Object // its namespace and controller alone
	message string
}

// NewDenials prepares a Denials and registers its metric. client should have a rate limit of its own.
func NewDenials(client kubernetes.Interface, registerer prometheus.Registerer, log logr.Logger) (*Denials, error) {
	d := &Denials{
		client: client, log: log, owners: NewOwners(client), namespaces: cache.NewLRUExpireCache(namespaceCache),
		counts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gpuslice_denial_events_total",
			Help: "Denied pods with an owner, by the owner's Event: recorded, repeated or dropped (rate limit)."},
			[]string{"result"}),
	}
	d.queue = NewQueue(QueueOptions[denial]{Size: queueSize, QPS: queueQPS, Burst: queueBurst, Remember: ownerCache, Quiet: ownerQuiet,
		Allow: func(n denial) bool { return d.limiterOf(n.pod.GetNamespace()).TryAccept() }})
	for _, result := range []AddResult{Added, Repeated, Dropped} {
		d.counts.WithLabelValues(string(result))
	}
	return d, registerer.Register(d.counts)
}

// Denied queues an Event on the controller of a denied pod. It never blocks.
func (d *Denials) Denied(pod metav1.Object, message string) {
	owner := ControllerOf(pod)
	if owner == nil || !plausible(owner) {
		return
	}
	d.counts.WithLabelValues(string(d.queue.Add(*owner, denial{controlled(pod), message}))).Inc()
}

// controlled is the pod without the fields by which no owner is found.
func controlled(pod metav1.Object) metav1.Object {
	return &metav1.ObjectMeta{Namespace: pod.GetNamespace(), OwnerReferences: []metav1.OwnerReference{*metav1.GetControllerOf(pod)}}
}

// limiterOf returns the namespace's rate limiter. Two callers who both make one for a new namespace do no harm.
func (d *Denials) limiterOf(namespace string) flowcontrol.RateLimiter {
	if limiter, ok := d.namespaces.Get(namespace); ok {
		return limiter.(flowcontrol.RateLimiter)
	}
	limiter := flowcontrol.NewTokenBucketRateLimiter(namespaceQPS, namespaceBurst)
	d.namespaces.Add(namespace, limiter, namespaceTTL)
	return limiter
}

// Run writes Events until ctx is done.
func (d *Denials) Run(ctx context.Context) error {
	d.queue.Run(ctx, d.write)
	return nil
}

// write writes the Event on the pod's owners: one on each, which all replicas count, with the last denial.
func (d *Denials) write(ctx context.Context, n denial) {
	for _, owner := range d.owners.Of(ctx, n.pod) {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		err := Again(ctx, d.client,
			Event{Object: owner, Type: corev1.EventTypeWarning, Reason: ReasonDenied, Message: "gpuslice denied a pod: " + n.message})
		cancel()
		if err != nil {
			d.log.Error(err, "denial not reported")
		}
	}
}
