package events

import (
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// ReasonDenied is the reason of the Events on the owners of a denied pod.
const ReasonDenied = "GPUSliceDenied"

// Bounds on the Events. A controller tries again and again; a tenant may make owners up.
const (
	ownerQuiet = 10 * time.Second // between two Events on one owner
	ownerCache = 4096

	namespaceQPS   = 0.5 // in one namespace, so that none takes the whole rate
	namespaceBurst = 10
	namespaceCache = 1024
	namespaceTTL   = time.Hour

	queueSize  = 256
	queueQPS   = 5.0
	queueBurst = 20
)

// Denials writes Events on the owners of denied pods. It is safe for concurrent use.
type Denials struct {
	client     kubernetes.Interface
	log        logr.Logger
	queue      *Queue[denial]
	namespaces *cache.LRUExpireCache // rate limiters
	parents    *cache.LRUExpireCache // the controller of an owner, by the owner's UID
	counts     *prometheus.CounterVec
}

// denial is an Event to be written on an owner.
type denial struct {
	owner   corev1.ObjectReference
	message string
}

// The metric's values of the label result.
const (
	resultRecorded = "recorded"
	resultRepeated = "repeated"
	resultDropped  = "dropped"
)

// NewDenials prepares a Denials and registers its metric. client should have a rate limit of its own.
func NewDenials(client kubernetes.Interface, registerer prometheus.Registerer, log logr.Logger) (*Denials, error) {
	d := &Denials{
		client: client, log: log,
		namespaces: cache.NewLRUExpireCache(namespaceCache), parents: cache.NewLRUExpireCache(ownerCache),
		counts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gpuslice_denial_events_total",
			Help: "Denied pods with an owner, by what happened to the Event on the owner: recorded, repeated (one was recorded just before) or dropped (rate limit)."},
			[]string{"result"}),
	}
	d.queue = NewQueue(QueueOptions[denial]{Size: queueSize, QPS: queueQPS, Burst: queueBurst, Remember: ownerCache, Quiet: ownerQuiet,
		Allow: func(n denial) bool { return d.limiterOf(n.owner.Namespace).TryAccept() }})
	for _, result := range []string{resultRecorded, resultRepeated, resultDropped} {
		d.counts.WithLabelValues(result)
	}
	return d, registerer.Register(d.counts)
}

// Denied queues an Event on the controller of a denied pod. It never blocks.
func (d *Denials) Denied(pod metav1.Object, message string) {
	owner := ControllerOf(pod)
	if owner == nil || !plausible(owner) {
		return
	}
	result := map[AddResult]string{Added: resultRecorded, Repeated: resultRepeated, Dropped: resultDropped}[d.queue.Add(*owner, denial{*owner, message})]
	d.counts.WithLabelValues(result).Inc()
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

// plausible reports whether the reference can name an object: a denied pod has not been validated yet.
func plausible(owner *corev1.ObjectReference) bool {
	return len(validation.IsDNS1123Subdomain(owner.Name)) == 0 && len(validation.IsDNS1035Label(strings.ToLower(owner.Kind))) == 0 &&
		len(owner.APIVersion) <= 2*validation.DNS1123SubdomainMaxLength && owner.UID != "" && len(owner.UID) <= 128
}

// Run writes Events until ctx ends.
func (d *Denials) Run(ctx context.Context) error {
	recorder := NewRecorder(klog.NewContext(ctx, d.log), d.client)
	defer recorder.Close()
	d.queue.Run(ctx, func(ctx context.Context, n denial) { d.write(ctx, recorder, n) })
	return nil
}

// write writes the Event on the owner and on the owner's controller: kubectl describe shows of a Deployment only the
// Events on the Deployment itself.
func (d *Denials) write(ctx context.Context, recorder *Recorder, n denial) {
	message := "gpuslice denied a pod: " + n.message
	recorder.Write(&n.owner, corev1.EventTypeWarning, ReasonDenied, message)
	if parent := d.parent(ctx, &n.owner); parent != nil {
		recorder.Write(parent, corev1.EventTypeWarning, ReasonDenied, message)
	}
}
