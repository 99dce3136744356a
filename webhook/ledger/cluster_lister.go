package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies"
)

// unfinished selects pods that have neither succeeded nor failed. Those that are being deleted are among them.
const activePods = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)

// maxLists bounds the lists of one reconcile that are under way at once.
const maxConcurrentLists = 8

// ClusterLister is the Lister of a cluster. No resourceVersion is asked for, so that each list shows all that was
// stored before it began; the namespaces of a shared budget are listed one by one, which is enough: a pod that is
// created after its own namespace's list has its reservation in the ledger that was read before all of them.
type ClusterLister struct {
	Client kubernetes.Interface
	// Hold is what a pod holds, and how that is known. What a Promise said of a pod is remembered until the pod changes:
	// reading it anew costs as much as the list.
	HoldingOf func(*corev1.Pod) (policies.Holding, ChargeBasis)

	mu    sync.Mutex
	cache map[string]map[string]cachedPod // by namespace and UID
}

// Standing says how it is known what a pod holds.
type ChargeBasis int

// The standings.
const (
	BasisPromise   ChargeBasis = iota // it was promised
	BasisDevices                      // it asked for whole devices, and was left alone
	BasisUnmanaged                    // it should have a Promise, and has none: it was created while nobody looked
)

// judged is a pod with a Promise as it was last read.
type cachedPod struct {
	version string
	basis   ChargeBasis
	pod     Pod
}

// List implements Lister.
func (l *ClusterLister) List(ctx context.Context, namespaces []string) (Listing, error) {
	found := make([]Listing, len(namespaces))
	errs := make([]error, len(namespaces))
	places := make(chan struct{}, maxConcurrentLists)
	var running sync.WaitGroup
	for i, name := range namespaces {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			found[i], errs[i] = l.listNamespace(ctx, name)
		})
	}
	running.Wait()
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
	there := Namespace{Name: name}
	if err == nil {
		there.UID, there.Created = string(n.UID), n.CreationTimestamp.Time
	}
	pods, err := l.Client.CoreV1().Pods(name).List(ctx, metav1.ListOptions{FieldSelector: activePods})
	if err != nil {
		return Listing{}, fmt.Errorf("list pods of namespace %s: %w", name, classify(err))
	}
	out := Listing{Namespaces: []Namespace{there}}
	out.Pods = l.podsOf(name, pods.Items)
	return out, nil
}

// judge says what the pods of a namespace hold, and forgets all others of it.
func (l *ClusterLister) podsOf(namespace string, pods []corev1.Pod) (out []Pod) {
	l.mu.Lock()
	known := l.cache[namespace]
	l.mu.Unlock()
	seen := make(map[string]cachedPod, len(pods))
	for i := range pods {
		p := &pods[i]
		j, ok := known[string(p.UID)]
		if !ok || j.version != p.ResourceVersion {
			holding, standing := l.HoldingOf(p)
			j = cachedPod{p.ResourceVersion, standing, Pod{UID: string(p.UID), Name: p.Name, Holding: holding, Unmanaged: standing == BasisUnmanaged}}
		}
		if j.pod.Holding.Charge == (policies.Charge{}) {
			continue
		}
		out = append(out, j.pod)
		if j.basis == BasisPromise { // what others hold depends on the pools that are known
			seen[j.pod.UID] = j
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cache == nil {
		l.cache = make(map[string]map[string]cachedPod)
	}
	l.cache[namespace] = seen
	if len(seen) == 0 { // namespaces come and go
		delete(l.cache, namespace)
	}
	return out
}
