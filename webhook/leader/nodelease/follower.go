package nodelease

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/guard/ticks"
)

// expiry is how often a Follower looks for agents that are away.
const expiry = time.Second

// Follower knows which nodes' agents enforce. It is safe for concurrent use.
type Follower struct {
	informer cache.SharedIndexInformer
	followed cache.ResourceEventHandlerRegistration

	mu      sync.Mutex
	nodes   map[string]renewal
	changed func(node string)
}

// renewal is when a node's Lease was last seen renewed.
type renewal struct {
	renewTime time.Time // as the agent wrote it; only compared with itself
	seen      time.Time
	away      bool // the agent is away, and changed was called
	report    lease.Report
}

// Follow returns a Follower of the Leases in a namespace. Run runs it.
func Follow(client kubernetes.Interface, namespace string) (*Follower, error) {
	f := &Follower{changed: func(string) {}, nodes: map[string]renewal{}}
	f.informer = coordinationinformers.NewFilteredLeaseInformer(client, namespace, 0, nil, func(o *metav1.ListOptions) {
		o.LabelSelector = labels.Set(lease.Labels()).String()
	})
	var err error
	f.followed, err = f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: f.renewed, UpdateFunc: func(_, object any) { f.renewed(object) }, DeleteFunc: f.deleted,
	})
	if err != nil {
		return nil, fmt.Errorf("watch Leases: %w", err)
	}
	return f, nil
}

// OnChange has changed called with each node whose agent comes or goes from now on, or enforces other pods. It replaces the
// function that was called before.
func (f *Follower) OnChange(changed func(node string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = changed
}

func (f *Follower) notify(node string) {
	f.mu.Lock()
	changed := f.changed
	f.mu.Unlock()
	changed(node)
}

// HasSynced reports whether every Lease was read once, and Agents has it.
func (f *Follower) HasSynced() bool { return f.followed.HasSynced() }

// Enforces reports whether the agent of a node enforces.
func (f *Follower) Enforces(node string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, found := f.nodes[node]
	return found && time.Since(known.seen) < lease.Duration
}

// Agent is the knowledge about a node's agent.
type Agent struct {
	Enforces    bool              // its Lease was renewed in time
	NotEnforced map[string]string // pod UID -> why the pod's slice is not enforced, by its last report
}

// Agents returns the agents that have a Lease, by node. The maps of reports are not to be changed.
func (f *Follower) Agents() map[string]Agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[string]Agent, len(f.nodes))
	for node, known := range f.nodes {
		all[node] = Agent{time.Since(known.seen) < lease.Duration, known.report.NotEnforced}
	}
	return all
}

// NotEnforced returns why the agent of a node does not enforce the slice of one pod, by its last report; empty:
// it does. One that is away enforces none: see Enforces.
func (f *Follower) NotEnforced(node, podUID string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes[node].report.NotEnforced[podUID]
}

// Used returns the GPU memory that a pod uses, in MiB, by the last report of its node's agent; false: it is not known.
func (f *Follower) Used(node, podUID string) (int64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.nodes[node]
	mib, ok := known.report.Used[podUID]
	return mib, ok && mib >= 0 && time.Since(known.seen) < lease.Duration
}

// Run follows the Leases until ctx is done.
func (f *Follower) Run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { f.informer.RunWithContext(ctx) })
	for range ticks.Every(ctx, expiry) {
		for _, node := range f.gone() {
			f.notify(node)
		}
	}
}

// gone returns the nodes whose agents are away since the last call.
func (f *Follower) gone() (nodes []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for node, known := range f.nodes {
		if !known.away && time.Since(known.seen) >= lease.Duration {
			known.away = true
			f.nodes[node] = known
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func (f *Follower) renewed(object any) {
	l, ok := object.(*coordinationv1.Lease)
	if !ok || l.Spec.HolderIdentity == nil || l.Spec.RenewTime == nil || l.Name != lease.Name(*l.Spec.HolderIdentity) {
		return
	}
	node := *l.Spec.HolderIdentity
	f.mu.Lock()
	known, found := f.nodes[node]
	if found && known.renewTime.Equal(l.Spec.RenewTime.Time) {
		f.mu.Unlock()
		return
	}
	next := renewal{renewTime: l.Spec.RenewTime.Time, seen: time.Now(), report: lease.Read(l.Annotations)}
	f.nodes[node] = next
	f.mu.Unlock()
	if !found || known.away || !maps.Equal(known.report.NotEnforced, next.report.NotEnforced) {
		f.notify(node)
	}
}

func (f *Follower) deleted(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	l, ok := object.(*coordinationv1.Lease)
	if !ok || l.Spec.HolderIdentity == nil || l.Name != lease.Name(*l.Spec.HolderIdentity) {
		return
	}
	f.mu.Lock()
	delete(f.nodes, *l.Spec.HolderIdentity)
	f.mu.Unlock()
	f.notify(*l.Spec.HolderIdentity)
}
