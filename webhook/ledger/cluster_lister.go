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
	// HoldingOf returns what a pod holds, and what that rests on. The holding of a promise is cached until the pod changes:
	// reading the promise costs as much as the list.
	HoldingOf func(*corev1.Pod) (quota.Holding, ChargeBasis)

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

// cachedPod is a pod with a promise as it was last read.
type cachedPod struct {
	version string
	basis   ChargeBasis
	pod     Pod
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

// podsOf returns the pods of a namespace that hold anything, and drops all others from the cache.
func (l *ClusterLister) podsOf(namespace string, pods []corev1.Pod) (out []Pod) {
	l.mu.Lock()
	cached := l.cache[namespace]
	l.mu.Unlock()
	seen := make(map[string]cachedPod, len(pods))
	for i := range pods {
		p := &pods[i]
		c, ok := cached[string(p.UID)]
		if !ok || c.version != p.ResourceVersion {
			holding, basis := l.HoldingOf(p)
			c = cachedPod{p.ResourceVersion, basis, Pod{UID: string(p.UID), Name: p.Name, Holding: holding, Unmanaged: basis == BasisUnmanaged}}
		}
		if c.pod.Holding.Charge == (quota.Charge{}) {
			continue
		}
		out = append(out, c.pod)
		if c.basis == BasisPromise { // what other pods hold changes with the pools
			seen[c.pod.UID] = c
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
