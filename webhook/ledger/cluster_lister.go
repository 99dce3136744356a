package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/bounded"
)

// activePods selects the pods that have neither succeeded nor failed, including those that are being deleted.
const activePods = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)

// maxConcurrentLists bounds the concurrent lists of one reconcile.
const maxConcurrentLists = 8

// ClusterLister is the Lister of a cluster. Its lists name no resourceVersion, so that each shows all that was stored before
// it began. It lists the namespaces of a shared budget one by one, which is enough: a pod that is created after its own
// namespace's list has its reservation in the ledger that was read before all of them.
type ClusterLister struct {
	Client kubernetes.Interface
	// HoldingOf returns a pod's holding, and its basis. It is cached until the pod changes: reading a promise costs as
	// much as the list.
	HoldingOf func(*corev1.Pod) (quota.Holding, ChargeBasis)
	// Generation returns the inputs of holdings of pods without a promise, in a namespace: the value changes with them.
	Generation func(namespace string) any

	mu    sync.Mutex
	cache map[string]map[string]cachedPod // by namespace and UID
}

// ChargeBasis is the basis of a charge.
type ChargeBasis int

// The bases.
const (
	BasisPromise   ChargeBasis = iota // a promise
	BasisDevices                      // the whole devices that the pod requests, without a promise
	BasisUnmanaged                    // the same, of a pod that should have a promise: it was created without a review
	basisNone                         // nothing that could be a GPU in any cluster
)

// needsNothing reports whether the pod holds nothing whatever pools, classes and policies there are. That is true of most pods.
func needsNothing(pod *corev1.Pod) bool {
	_, promised := pod.Annotations[api.AnnotationPromise]
	extended := func(r corev1.ResourceRequirements) bool {
		for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
			for name := range list {
				if strings.Contains(string(name), "/") {
					return true
				}
			}
		}
		return false
	}
	container := func(c corev1.Container) bool { return extended(c.Resources) }
	return !promised && len(pod.Spec.ResourceClaims) == 0 &&
		!slices.ContainsFunc(pod.Spec.InitContainers, container) && !slices.ContainsFunc(pod.Spec.Containers, container)
}

// holding returns a pod's holding and its basis, by HoldingOf unless the pod needs nothing.
func holding(of func(*corev1.Pod) (quota.Holding, ChargeBasis), pod *corev1.Pod) (quota.Holding, ChargeBasis) {
	if needsNothing(pod) {
		return quota.Holding{Namespace: pod.Namespace}, basisNone
	}
	return of(pod)
}

// ofCluster reports whether a holding may change although its pod does not.
func (b ChargeBasis) ofCluster() bool { return b == BasisDevices || b == BasisUnmanaged }

// cachedPod is a pod as it was last read.
type cachedPod struct {
	version    string
	generation any // nil: its holding is fixed for good
	pod        Pod
}

// List implements Lister.
func (l *ClusterLister) List(ctx context.Context, namespaces []string) (Listing, error) {
	found := make([]Listing, len(namespaces))
	errs := make([]error, len(namespaces))
	var group errgroup.Group
	group.SetLimit(maxConcurrentLists)
	for i, name := range namespaces {
		group.Go(func() error {
			found[i], errs[i] = l.listNamespace(ctx, name)
			return errs[i]
		})
	}
	_ = group.Wait() // errs has every error
	var all Listing
	for _, one := range found {
		all.Namespaces = append(all.Namespaces, one.Namespaces...)
		all.Pods = append(all.Pods, one.Pods...)
	}
	return all, errors.Join(errs...)
}

func (l *ClusterLister) listNamespace(ctx context.Context, name string) (Listing, error) {
	n, err := l.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return Listing{}, fmt.Errorf("read namespace %s: %w", name, classify(err))
	}
	found := Namespace{Name: name}
	if err == nil {
		found.UID, found.Created = string(n.UID), n.CreationTimestamp.Time
	}
	pods := l.collect(name)
	source := bounded.From(l.Client, l.Client.CoreV1().Pods(name), activeOnly)
	version, err := source.Each(ctx, metav1.ListOptions{}, pods.add)
	if err != nil {
		return Listing{}, fmt.Errorf("list pods of namespace %s: %w", name, classify(err))
	}
	l.remember(name, pods.seen)
	found.Revision, _ = strconv.ParseUint(version, 10, 64) // 0 where it is no number: unknown
	return Listing{Namespaces: []Namespace{found}, Pods: pods.holding}, nil
}

// activeOnly selects activePods.
func activeOnly(o *metav1.ListOptions) { o.FieldSelector = activePods }

// read reads a pod's holding.
func (l *ClusterLister) read(p *corev1.Pod, generation any) cachedPod {
	held, basis := holding(l.HoldingOf, p)
	if !basis.ofCluster() {
		generation = nil
	}
	return cachedPod{p.ResourceVersion, generation,
		Pod{UID: string(p.UID), Name: p.Name, Holding: held, Unmanaged: basis == BasisUnmanaged}}
}

// podsOf collects the pods of a namespace.
type podsOf struct {
	lister     *ClusterLister
	generation any
	cached     map[string]cachedPod // from before
	seen       map[string]cachedPod
	holding    []Pod // those that hold anything
}

// collect begins to collect the pods of a namespace.
func (l *ClusterLister) collect(namespace string) *podsOf {
	generation := l.Generation(namespace) // before the holdings: they are at least as new
	l.mu.Lock()
	defer l.mu.Unlock()
	return &podsOf{lister: l, generation: generation, cached: l.cache[namespace], seen: map[string]cachedPod{}}
}

// add adds a pod of a list.
func (p *podsOf) add(object runtime.Object) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil
	}
	c, ok := p.cached[string(pod.UID)]
	if !ok || c.version != pod.ResourceVersion || c.generation != nil && c.generation != p.generation { // or the cluster has changed
		c = p.lister.read(pod, p.generation)
	}
	if len(pod.Spec.ResourceClaims) == 0 { // claims may change without their pods
		p.seen[c.pod.UID] = c
	}
	if c.pod.Holding.Charge != (quota.Charge{}) {
		p.holding = append(p.holding, c.pod)
	}
	return nil
}

// remember keeps the pods of a namespace until its next list, and drops all others from the cache.
func (l *ClusterLister) remember(namespace string, seen map[string]cachedPod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cache == nil {
		l.cache = make(map[string]map[string]cachedPod)
	}
	l.cache[namespace] = seen
	if len(seen) == 0 { // or deleted namespaces would stay
		delete(l.cache, namespace)
	}
}
