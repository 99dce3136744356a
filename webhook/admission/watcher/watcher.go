// Package watcher follows the inputs of decisions beside the pod in a cluster: policies, nodes, namespaces and ResourceQuotas. It keeps
// the latest cluster.Snapshot of them.
package watcher

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/operator"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

// saveRetry is how long a replica waits before it retries a failed save.
const saveRetry = 10 * time.Second

// A new snapshot for changes of nodes waits until the one before has rested: a wave of changes, of every node of a large cluster, then
// takes a twentieth of a core.
const (
	nodesRest    = 19 // times as long as the snapshot took
	maxNodesRest = 5 * time.Second
)

// ageEvery is the period of checks of things that end by time.
const ageEvery = time.Minute

// Options are the parts of a Watcher.
type Options struct {
	Client    kubernetes.Interface
	Objects   dynamic.Interface     // reads the GPU Operator's ClusterPolicy; nil: nothing does
	Namespace string                // the authority's policies and the state live there
	Guard     *config.GuardSettings // nil: no guard is injected
	Metrics   *metrics.Metrics
	Log       logr.Logger
}

// Watcher keeps a Snapshot up to date. Run must be running for there to be one.
type Watcher struct {
	options    Options
	informers  informers
	claims     claimReader
	namespaces *Namespaces
	state      stateStore
	quotas     *nativequota.Quotas
	operator   *operator.Reader
	problems   problemLog

	snapshot       atomic.Pointer[cluster.Snapshot]
	changed        chan struct{}
	nodesChanged   chan struct{} // nodes, or the ResourceSlices of drivers
	tenantsChanged chan struct{}

	// Of Run's goroutine.
	lastGood map[string]cluster.GoodPolicy // saved or not
}

// New prepares a Watcher.
func New(options Options) (*Watcher, error) {
	w := &Watcher{
		options: options, changed: make(chan struct{}, 1), nodesChanged: make(chan struct{}, 1), tenantsChanged: make(chan struct{}, 1),
		problems: problemLog{metrics: options.Metrics, log: options.Log},
	}
	var err error
	w.quotas = nativequota.NewQuotas(options.Client, reportFull(options.Log))
	if w.informers, err = newInformers(options, waker(w.changed), waker(w.nodesChanged), waker(w.tenantsChanged)); err != nil {
		return nil, err
	}
	w.operator = &operator.Reader{Objects: options.Objects, Changed: waker(w.changed), Log: options.Log}
	if w.claims, err = newClaimReader(options.Client, options.Log, waker(w.nodesChanged)); err != nil {
		return nil, err
	}
	w.namespaces = &Namespaces{client: options.Client, informer: w.informers.namespaces, reads: semaphore.NewWeighted(maxReads)}
	w.state = stateStore{client: options.Client, namespace: options.Namespace, informer: w.informers.state}
	return w, nil
}

// waker makes a function that requests a new snapshot of the worker. Many calls while it works come to one.
func waker(worker chan<- struct{}) func() {
	return func() {
		select {
		case worker <- struct{}{}:
		default:
		}
	}
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	var informers sync.WaitGroup
	defer informers.Wait()
	all := slices.Concat(w.informers.all(), []cache.SharedIndexInformer{w.quotas.Informer()}, w.claims.served(ctx))
	synced := []cache.InformerSynced{w.operator.HasSynced}
	for _, informer := range all {
		synced = append(synced, informer.HasSynced)
		informers.Go(func() { informer.RunWithContext(ctx) })
	}
	informers.Go(func() { w.operator.Run(ctx) })
	informers.Go(func() { w.claims.awaitServed(ctx, discoveryPeriod) })
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	for {
		var retry <-chan time.Time
		started := time.Now()
		if err := w.rebuild(ctx); err != nil {
			w.options.Metrics.CountUnsaved()
			w.options.Log.Error(err, "state not saved", "retryAfter", saveRetry.String())
			retry = time.After(saveRetry)
		} else if w.snapshot.Load().Ages() {
			retry = time.After(ageEvery)
		}
		if !w.awaitChange(ctx, retry, time.After(min(nodesRest*time.Since(started), maxNodesRest))) {
			return nil
		}
	}
}

// awaitChange returns when there is reason for a new snapshot, and false when ctx ends. Meanwhile it puts tenants' own
// documents and recommended sizes into force: nothing else depends on them, and they may change often.
// Changes of nodes count once rested is over.
func (w *Watcher) awaitChange(ctx context.Context, retry, rested <-chan time.Time) bool {
	var nodesChanged <-chan struct{}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-w.changed:
			return true
		case <-retry:
			return true
		case <-rested:
			nodesChanged = w.nodesChanged
		case <-nodesChanged:
			return true
		case <-w.tenantsChanged:
			next, changed := w.snapshot.Load().WithTenants(w.tenants())
			w.snapshot.Store(next)
			w.problems.reportTenants(next.Tenants(), changed)
		}
	}
}

// rebuild makes a new snapshot of the caches' content, puts it into force, and then saves the state that must survive.
// Its error is about saving alone.
func (w *Watcher) rebuild(ctx context.Context) error {
	// Read before the list: the list is then at least as new.
	seen := w.informers.policies.LastSyncResourceVersion()
	var maps []*corev1.ConfigMap
	forEach(w.informers.policies, func(m *corev1.ConfigMap) {
		if m.Labels[api.LabelPolicy] == "true" {
			maps = append(maps, m)
		}
	})
	var nodes []*corev1.Node
	forEach(w.informers.nodes, func(n *corev1.Node) { nodes = append(nodes, n) })

	from := cluster.Objects{Policies: maps, Tenants: w.tenants(), State: w.state.configMap(), Source: w.claims.source(nodes),
		Guard: w.options.Guard, Runtimes: w.runtimes()}
	good := cluster.Newest(cluster.LastGood(from.State), w.lastGood)
	snapshot, changed := cluster.Next(w.snapshot.Load(), from, good, time.Now())
	w.snapshot.Store(snapshot)
	w.problems.reportTenants(snapshot.Tenants(), changed)
	w.problems.report(snapshot.StateReport())
	wanted := snapshot.State(good, seen)
	w.lastGood = wanted.Policies
	return w.state.save(ctx, wanted)
}

// runtimes are the facts in the caches about how a guard can reach the driver.
func (w *Watcher) runtimes() pools.Runtimes {
	var classes []*nodev1.RuntimeClass
	forEach(w.informers.classes, func(c *nodev1.RuntimeClass) { classes = append(classes, c) })
	return pools.RuntimesOf(classes, w.operator.Latest())
}

// tenants are the ConfigMaps in the cache that are tenants' own documents.
func (w *Watcher) tenants() (maps []*corev1.ConfigMap) {
	forEach(w.informers.tenants, func(m *corev1.ConfigMap) {
		if place, _ := config.PlaceOf(m, w.options.Namespace); place.Tenant {
			maps = append(maps, m)
		}
	})
	return maps
}

// cached is the object of a key in an informer's cache, or nil.
func cached[T any](informer cache.SharedIndexInformer, key string) (object T) {
	found, _, _ := informer.GetStore().GetByKey(key)
	object, _ = found.(T)
	return object
}

// forEach calls f for all objects of one type in an informer's cache.
func forEach[T any](informer cache.SharedIndexInformer, f func(T)) {
	_ = cache.ListAll(informer.GetStore(), labels.Everything(), func(object any) {
		if typed, ok := object.(T); ok {
			f(typed)
		}
	})
}
