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

// ReasonRefused is the reason of the Events that tell an owner of a refused pod.
const ReasonDenied = "GPUSliceRefused"

// Bounds on what is told. A controller tries again and again; a tenant may make owners up.
const (
	quiet          = 10 * time.Second // between two Events on one owner
	rememberOwners = 4096

	namespaceRate, namespaceBurst = 0.5, 10 // owners told a second in one namespace, so that none takes it all
	rememberNamespaces            = 1024

	rate, burst = 5.0, 20 // owners told a second in all
	waiting     = 256     // owners that wait to be told
)

// Refusals tells the owners of refused pods. Its methods may be called side by side.
type Denials struct {
	client     kubernetes.Interface
	log        logr.Logger
	queue      chan denial
	told       *cache.LRUExpireCache // owners, for as long as they are left in peace
	namespaces *cache.LRUExpireCache // their rate limiters
	parents    *cache.LRUExpireCache // what controls an owner, by its UID
	limiter    flowcontrol.RateLimiter
	counts     *prometheus.CounterVec
}

// refusal is what one owner is to be told.
type denial struct {
	owner corev1.ObjectReference
	text  string
}

// What became of refusals, as the metric has it.
const (
	resultRecorded = "told"
	resultRepeated = "repeated"
	resultDropped  = "dropped"
)

// NewRefusals prepares a Refusals and registers its metric. client should have an allowance of its own.
func NewDenials(client kubernetes.Interface, registerer prometheus.Registerer, log logr.Logger) (*Denials, error) {
	r := &Denials{
		client: client, log: log, queue: make(chan denial, waiting),
		told: cache.NewLRUExpireCache(rememberOwners), namespaces: cache.NewLRUExpireCache(rememberNamespaces),
		parents: cache.NewLRUExpireCache(rememberOwners), limiter: flowcontrol.NewTokenBucketRateLimiter(rate, burst),
		counts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gpuslice_refusal_events_total",
			Help: "Refused pods with an owner: whether the owner was told by an Event, had been told just before (repeated), or not for want of allowance (dropped)."},
			[]string{"result"}),
	}
	for _, result := range []string{resultRecorded, resultRepeated, resultDropped} {
		r.counts.WithLabelValues(result)
	}
	return r, registerer.Register(r.counts)
}

// Refused notes that a pod was refused, to tell what controls it. It never waits.
func (r *Denials) Denied(pod metav1.Object, text string) {
	owner := ControllerOf(pod)
	if owner == nil || !plausible(owner) {
		return
	}
	r.counts.WithLabelValues(r.enqueue(denial{*owner, text})).Inc()
}

// note queues a refusal, unless its owner was told just before or there is too much to tell.
func (r *Denials) enqueue(f denial) string {
	if _, told := r.told.Get(f.owner); told {
		return resultRepeated
	}
	if !r.limiterOf(f.owner.Namespace).TryAccept() {
		return resultDropped
	}
	select {
	case r.queue <- f:
		r.told.Add(f.owner, true, quiet)
		return resultRecorded
	default:
		return resultDropped
	}
}

// limiterOf is the namespace's allowance. Two callers who both make one for a new namespace do no harm.
func (r *Denials) limiterOf(namespace string) flowcontrol.RateLimiter {
	if limiter, ok := r.namespaces.Get(namespace); ok {
		return limiter.(flowcontrol.RateLimiter)
	}
	limiter := flowcontrol.NewTokenBucketRateLimiter(namespaceRate, namespaceBurst)
	r.namespaces.Add(namespace, limiter, time.Hour)
	return limiter
}

// plausible says that the reference may name an object: refused pods are not validated yet.
func plausible(owner *corev1.ObjectReference) bool {
	return len(validation.IsDNS1123Subdomain(owner.Name)) == 0 && len(validation.IsDNS1035Label(strings.ToLower(owner.Kind))) == 0 &&
		len(owner.APIVersion) <= 2*validation.DNS1123SubdomainMaxLength && owner.UID != "" && len(owner.UID) <= 128
}

// Run tells owners until ctx ends.
func (r *Denials) Run(ctx context.Context) error {
	recorder := NewRecorder(klog.NewContext(ctx, r.log), r.client)
	defer recorder.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-r.queue:
			if r.limiter.Wait(ctx) == nil {
				r.write(ctx, recorder, f)
			}
		}
	}
}

// tell writes the Event on the owner and on what controls that: kubectl describe shows of a Deployment only what was
// said of the Deployment itself.
func (r *Denials) write(ctx context.Context, recorder *Recorder, f denial) {
	sentence := "gpuslice refused a pod: " + f.text
	recorder.Write(&f.owner, corev1.EventTypeWarning, ReasonDenied, sentence)
	if parent := r.parent(ctx, &f.owner); parent != nil {
		recorder.Write(parent, corev1.EventTypeWarning, ReasonDenied, sentence)
	}
}
