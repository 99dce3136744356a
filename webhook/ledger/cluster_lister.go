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
const unfinished = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)

// maxLists bounds the lists of one reconcile that are under way at once.
const maxLists = 8

// ClusterLister is the Lister of a cluster. No resourceVersion is asked for, so that each list shows all that was
// stored before it began; the namespaces of a shared budget are listed one by one, which is enough: a pod that is
// created after its own namespace's list has its reservation in the ledger that was read before all of them.
type ClusterLister struct {
	Client kubernetes.Interface
	// Hold is what a pod holds, and how that is known. What a Promise said of a pod is remembered until the pod changes:
	// reading it anew costs as much as the list.
	Hold func(*corev1.Pod) (policies.Holding, Standing)

	mu       sync.Mutex
	promised map[string]map[string]judged // by namespace and UID
}

// Standing says how it is known what a pod holds.
type Standing int

// The standings.
const (
	Promised   Standing = iota // it was promised
	Exclusive                  // it asked for whole devices, and was left alone
	Unpromised                 // it should have a Promise, and has none: it was created while nobody looked
)

// judged is a pod with a Promise as it was last read.
type judged struct {
	version  string
	standing Standing
	pod      Pod
}

// List implements Lister.
func (l *ClusterLister) List(ctx context.Context, namespaces []string) (Listing, error) {
	found := make([]Listing, len(namespaces))
	errs := make([]error, len(namespaces))
	places := make(chan struct{}, maxLists)
	var running sync.WaitGroup
	for i, name := range namespaces {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			found[i], errs[i] = l.namespace(ctx, name)
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

func (l *ClusterLister) namespace(ctx context.Context, name string) (Listing, error) {
	n, err := l.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return Listing{}, fmt.Errorf("read namespace %s: %w", name, outcome(err))
	}
	there := Namespace{Name: name}
	if err == nil {
		there.UID, there.Created = string(n.UID), n.CreationTimestamp.Time
	}
	pods, err := l.Client.CoreV1().Pods(name).List(ctx, metav1.ListOptions{FieldSelector: unfinished})
	if err != nil {
		return Listing{}, fmt.Errorf("list pods of namespace %s: %w", name, outcome(err))
	}
	out := Listing{Namespaces: []Namespace{there}}
	out.Pods = l.judge(name, pods.Items)
	return out, nil
}

// judge says what the pods of a namespace hold, and forgets all others of it.
func (l *ClusterLister) judge(namespace string, pods []corev1.Pod) (out []Pod) {
	l.mu.Lock()
	known := l.promised[namespace]
	l.mu.Unlock()
	seen := make(map[string]judged, len(pods))
	for i := range pods {
		p := &pods[i]
		j, ok := known[string(p.UID)]
		if !ok || j.version != p.ResourceVersion {
			holding, standing := l.Hold(p)
			j = judged{p.ResourceVersion, standing, Pod{UID: string(p.UID), Name: p.Name, Holding: holding, Unpromised: standing == Unpromised}}
		}
		if j.pod.Holding.Charge == (policies.Charge{}) {
			continue
		}
		out = append(out, j.pod)
		if j.standing == Promised { // what others hold depends on the pools that are known
			seen[j.pod.UID] = j
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.promised == nil {
		l.promised = make(map[string]map[string]judged)
	}
	l.promised[namespace] = seen
	if len(seen) == 0 { // namespaces come and go
		delete(l.promised, namespace)
	}
	return out
}
