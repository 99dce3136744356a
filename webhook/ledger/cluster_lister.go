package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/quota"
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
	// HoldingOf returns what a pod holds, and what that rests on. It is cached until the pod changes: reading a promise costs as
	// much as the list.
	HoldingOf func(*corev1.Pod) (quota.Holding, ChargeBasis)
	// Generation returns what the holdings of pods without a promise depend on, in a namespace: the value changes with it.
	Generation func(namespace string) any

	mu    sync.Mutex
	cache map[string]map[string]cachedPod // by namespace and UID
}

// ChargeBasis is what a charge rests on.
type ChargeBasis int

// The bases.
const (
	BasisPromise   ChargeBasis = iota // a promise
	BasisDevices                      // the whole devices that the pod requests, without a promise
	BasisUnmanaged                    // the same, of a pod that should have a promise: it was created without a review
)

// cachedPod is a pod as it was last read.
type cachedPod struct {
	version    string
	generation any // nil: it has a promise, which says for good what it holds
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
	pods, err := l.Client.CoreV1().Pods(name).List(ctx, metav1.ListOptions{FieldSelector: activePods})
	if err != nil {
		return Listing{}, fmt.Errorf("list pods of namespace %s: %w", name, classify(err))
	}
	found.Revision, _ = strconv.ParseUint(pods.ResourceVersion, 10, 64) // 0 where it is no number: unknown
	out := Listing{Namespaces: []Namespace{found}}
	out.Pods = l.podsOf(name, pods.Items)
	return out, nil
}

// read reads a pod's holding.
func (l *ClusterLister) read(p *corev1.Pod, generation any) cachedPod {
	holding, basis := l.HoldingOf(p)
	if basis == BasisPromise {
		generation = nil
	}
	return cachedPod{p.ResourceVersion, generation, Pod{UID: string(p.UID), Name: p.Name, Holding: holding, Unmanaged: basis == BasisUnmanaged}}
}

// podsOf returns the pods of a namespace that hold anything, and drops all others from the cache.
func (l *ClusterLister) podsOf(namespace string, pods []corev1.Pod) (out []Pod) {
	generation := l.Generation(namespace) // before the holdings: they are at least as new
	l.mu.Lock()
	cached := l.cache[namespace]
	l.mu.Unlock()
	seen := make(map[string]cachedPod, len(pods))
	for i := range pods {
		p := &pods[i]
		c, ok := cached[string(p.UID)]
		if !ok || c.version != p.ResourceVersion || c.generation != nil && c.generation != generation {
			c = l.read(p, generation)
		}
		if len(p.Spec.ResourceClaims) == 0 { // claims may change without their pods
			seen[c.pod.UID] = c
		}
		if c.pod.Holding.Charge != (quota.Charge{}) {
			out = append(out, c.pod)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cache == nil {
		l.cache = make(map[string]map[string]cachedPod)
	}
	l.cache[namespace] = seen
	if len(seen) == 0 { // or deleted namespaces would stay
		delete(l.cache, namespace)
	}
	return out
}
