package nodelease

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// expiry is how often a Follower looks which agents are away.
const expiry = time.Second

// Follower knows which nodes' agents enforce. It is safe for concurrent use.
type Follower struct {
	informer cache.SharedIndexInformer
	changed  func(node string)

	mu    sync.Mutex
	nodes map[string]renewal
}

// renewal is when a node's Lease was last seen renewed.
type renewal struct {
	renewTime time.Time // as the agent wrote it; only compared with itself
	seen      time.Time
	away      bool // and changed was called since
	text      string
	reasons   map[string]string // of text, by pod UID
	used      map[string]int64  // MiB, by pod UID
}

// Follow returns a Follower of the Leases in a namespace. It calls changed with each node whose agent has come or gone.
// Run runs it.
func Follow(client kubernetes.Interface, namespace string, changed func(node string)) (*Follower, error) {
	f := &Follower{changed: changed, nodes: map[string]renewal{}}
	f.informer = coordinationinformers.NewFilteredLeaseInformer(client, namespace, 0, nil, func(o *metav1.ListOptions) {
		o.LabelSelector = labels.Set(Labels()).String()
	})
	_, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: f.renewed, UpdateFunc: func(_, object any) { f.renewed(object) }, DeleteFunc: f.deleted,
	})
	if err != nil {
		return nil, fmt.Errorf("watch Leases: %w", err)
	}
	return f, nil
}

// HasSynced reports whether every Lease was read once.
func (f *Follower) HasSynced() bool { return f.informer.HasSynced() }

// Enforces reports whether the agent of a node enforces.
func (f *Follower) Enforces(node string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, found := f.nodes[node]
	return found && time.Since(known.seen) < Duration
}

// NotEnforced returns why the agent of a node does not enforce the slice of one pod, as it last said; empty:
// it does. One that is away enforces none: see Enforces.
func (f *Follower) NotEnforced(node, podUID string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes[node].reasons[podUID]
}

// Used returns the GPU memory that a pod uses, in MiB, as the agent of its node last told; false: it is not known.
func (f *Follower) Used(node, podUID string) (int64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.nodes[node]
	mib, ok := known.used[podUID]
	return mib, ok && mib >= 0 && time.Since(known.seen) < Duration
}

// Run follows the Leases until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { f.informer.RunWithContext(ctx) })
	tick := time.NewTicker(expiry)
	defer tick.Stop()
	for {
		for _, node := range f.gone() {
			f.changed(node)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// gone returns the nodes whose agents are away since the last call.
func (f *Follower) gone() (nodes []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for node, known := range f.nodes {
		if !known.away && time.Since(known.seen) >= Duration {
			known.away = true
			f.nodes[node] = known
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func (f *Follower) renewed(object any) {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil || lease.Name != Name(*lease.Spec.HolderIdentity) {
		return
	}
	node := *lease.Spec.HolderIdentity
	f.mu.Lock()
	known, found := f.nodes[node]
	if found && known.renewTime.Equal(lease.Spec.RenewTime.Time) {
		f.mu.Unlock()
		return
	}
	next := renewal{renewTime: lease.Spec.RenewTime.Time, seen: time.Now(), text: lease.Annotations[AnnotationNotEnforced]}
	if err := json.Unmarshal([]byte(next.text), &next.reasons); err != nil {
		next.reasons = nil // there are none, or a newer agent writes them otherwise
	}
	if err := json.Unmarshal([]byte(lease.Annotations[AnnotationUsed]), &next.used); err != nil {
		next.used = nil // likewise
	}
	f.nodes[node] = next
	f.mu.Unlock()
	if !found || known.away || known.text != next.text {
		f.changed(node)
	}
}

func (f *Follower) deleted(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	lease, ok := object.(*coordinationv1.Lease)
	if !ok || lease.Spec.HolderIdentity == nil {
		return
	}
	f.mu.Lock()
	delete(f.nodes, *lease.Spec.HolderIdentity)
	f.mu.Unlock()
	f.changed(*lease.Spec.HolderIdentity)
}
