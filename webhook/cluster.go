package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

// saveRetry is how long a replica waits before it tries again to save what it could not.
const saveRetry = 10 * time.Second

// Cluster is the Source that watches a cluster: policy ConfigMaps and the state of the system namespace, namespaces,
// nodes and ResourceQuotas. Run must be running for it to know anything.
type Cluster struct {
	client  kubernetes.Interface
	system  string
	guard   *policies.GuardSettings
	metrics *Metrics
	log     logr.Logger

	watched  watched
	quotas   *nativequota.Quotas
	young    gate // namespaces being read from the API server
	snapshot atomic.Pointer[Snapshot]
	changed  chan struct{}
	rewrote  chan struct{} // tenants' own documents have changed

	budgetBook budgetBook

	good     map[string]GoodPolicy // the worker's own: last good policies, saved or not
	reported map[string]string     // the worker's own: problems that were logged, by policy
}

// NewCluster prepares a Source on the cluster of client; its authority's policies live in the namespace system. guard
// says where the guard's image is; nil: none is injected.
func NewCluster(client kubernetes.Interface, system string, guard *policies.GuardSettings, metrics *Metrics, log logr.Logger) (*Cluster, error) {
	c := &Cluster{
		client: client, system: system, guard: guard, metrics: metrics, log: log,
		young: newGate(maxYoung), changed: make(chan struct{}, 1), rewrote: make(chan struct{}, 1), reported: map[string]string{},
	}
	var err error
	if c.quotas, err = nativequota.NewQuotas(client); err != nil {
		return nil, err
	}
	c.watched, err = watch(client, system, waker(c.changed), waker(c.rewrote))
	return c, err
}

// waker makes a function that asks the worker for a new snapshot. Many calls while it works come to one.
func waker(worker chan<- struct{}) func() {
	return func() {
		select {
		case worker <- struct{}{}:
		default:
		}
	}
}

// Run watches until ctx ends.
func (c *Cluster) Run(ctx context.Context) error {
	var informers sync.WaitGroup
	defer informers.Wait()
	for _, informer := range append(c.watched.all(), c.quotas.Informer()) {
		informers.Go(func() { informer.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), append(c.watched.synced(), c.quotas.Informer().HasSynced)...) {
		return nil
	}
	for {
		var retry <-chan time.Time
		if err := c.rebuild(ctx); err != nil {
			c.metrics.unsaved.Inc()
			c.log.Error(err, "state not saved", "retryAfter", saveRetry.String())
			retry = time.After(saveRetry)
		}
		if !c.awaitChange(ctx, retry) {
			return nil
		}
	}
}

// awaitChange returns when there is reason for a new snapshot, and false when ctx ends. Meanwhile it puts tenants' own
// documents into force: nothing else depends on them, and they may change often.
func (c *Cluster) awaitChange(ctx context.Context, retry <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-c.changed:
			return true
		case <-retry:
			return true
		case <-c.rewrote:
			snapshot := *c.snapshot.Load()
			snapshot.tenants = c.readTenants(snapshot.tenants)
			c.snapshot.Store(&snapshot)
		}
	}
}

// Ready says why reviews cannot be answered yet: nil once a first snapshot stands.
func (c *Cluster) Ready() error {
	if c.snapshot.Load() == nil {
		return errors.New("policies, namespaces and nodes are not read yet")
	}
	return nil
}

// Nodes is the informer of the cluster's nodes, with labels and allocatable alone. Run runs it; others may read it and
// be told of changes.
func (c *Cluster) Nodes() cache.SharedIndexInformer { return c.watched.nodes }

// Namespaces is the informer of the cluster's namespaces, with labels and without annotations. Run runs it.
func (c *Cluster) Namespaces() cache.SharedIndexInformer { return c.watched.namespaces }

// Input implements Source.
func (c *Cluster) Input(ctx context.Context, namespace string) (policies.Input, error) {
	snapshot := c.snapshot.Load()
	if snapshot == nil {
		return policies.Input{}, c.Ready()
	}
	ns, err := c.namespace(ctx, namespace)
	if err != nil {
		return policies.Input{}, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	return snapshot.Input(policies.Namespace{Name: ns.Name, Labels: ns.Labels}), nil
}

// rebuild makes a new snapshot of what the informers know, puts it into force, and then saves what must survive. Its
// error is about saving alone.
func (c *Cluster) rebuild(ctx context.Context) error {
	// Read before the list: the list is then at least as new as seen says.
	seen := c.watched.policies.LastSyncResourceVersion()
	var maps []*corev1.ConfigMap
	each(c.watched.policies, func(m *corev1.ConfigMap) {
		if m.Labels[policies.LabelPolicy] == "true" {
			maps = append(maps, m)
		}
	})
	var nodes []*corev1.Node
	each(c.watched.nodes, func(n *corev1.Node) { nodes = append(nodes, n) })

	saved := c.saved()
	good := newest(saved.policies, c.good)
	documents := readDocuments(maps, good)
	snapshot := newSnapshot(documents)
	var tenants map[string]*tenant
	if before := c.snapshot.Load(); before != nil {
		tenants = before.tenants
	}
	snapshot.tenants = c.readTenants(tenants)
	snapshot.on(nodes, saved.pools, c.guard)
	snapshot.known = snapshot.knows(len(nodes))
	c.snapshot.Store(snapshot)
	c.good = advance(good, documents, seen)
	c.report(snapshot)
	return c.save(ctx, state{policies: c.good, pools: memorable(snapshot.pools)})
}

// each calls f for all that an informer knows of one type.
func each[T any](informer cache.SharedIndexInformer, f func(T)) {
	_ = cache.ListAll(informer.GetStore(), labels.Everything(), func(object any) {
		if typed, ok := object.(T); ok {
			f(typed)
		}
	})
}
