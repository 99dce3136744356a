package ledger

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/guard/ticks"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/bounded"
)

const (
	// maxWatches bounds the namespaces that a replica watches. The pods of others are listed.
	maxWatches = 200
	// watchTTL is how long a namespace is watched after a budget was last decided by it.
	watchTTL = workerTTL
	// minWatchAge is how long a watch lasts at least before it is started again because the cluster has changed, and maxWatchStart how
	// long where it shows nothing yet.
	minWatchAge   = time.Second
	maxWatchStart = 10 * time.Second
)

// ClusterWatcher is the Watcher of a cluster. Each namespace has a watch of its own, from its first use.
type ClusterWatcher struct {
	Client kubernetes.Interface
	// HoldingOf is as in ClusterLister.
	HoldingOf func(*corev1.Pod) (quota.Holding, ChargeBasis)
	// Generation returns the inputs of holdings of pods without a promise, in a namespace: the value changes with them.
	Generation func(namespace string) any
	// Gone is where pods are added that are shown to end or to be deleted. Optional.
	Gone *GonePods

	mu      sync.Mutex
	ctx     context.Context // of Run; nil: it does not run
	watches map[string]*namespaceWatch
	running sync.WaitGroup
}

// namespaceWatch is the watch of one namespace.
type namespaceWatch struct {
	pods           *watchedPods
	cancel         context.CancelFunc
	started, asked time.Time
	generation     any
}

// Run watches the namespaces of calls of View, until ctx ends.
func (c *ClusterWatcher) Run(ctx context.Context) {
	c.mu.Lock()
	c.ctx, c.watches = ctx, make(map[string]*namespaceWatch)
	c.mu.Unlock()
	for range ticks.After(ctx, watchTTL/10) {
		c.dropIdle()
	}
	c.mu.Lock()
	c.ctx = nil // or a watch could start while the others are waited for
	c.mu.Unlock()
	c.running.Wait()
}

// dropIdle ends unused watches.
func (c *ClusterWatcher) dropIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, w := range c.watches {
		if time.Since(w.asked) > watchTTL {
			w.cancel()
			delete(c.watches, name)
		}
	}
}

// View implements Watcher.
func (c *ClusterWatcher) View(namespaces []string, reservations []Reservation) (View, bool) {
	view := View{Shown: make(map[string]bool)}
	all := true // each namespace is tried, so that all watches start
	for _, name := range namespaces {
		w, pending := c.watch(name)
		switch {
		case w == nil:
			all, view.Pending = false, view.Pending || pending
		case !w.pods.addTo(&view, name, reservations):
			all, view.Pending = false, view.Pending || w.pods.pending()
		}
	}
	return view, all
}

// watch returns the watch of a namespace; nil: it has none, or is soon to be started again. It starts one that is missing, or whose pods
// hold something else now.
func (c *ClusterWatcher) watch(namespace string) (w *namespaceWatch, pending bool) {
	generation := c.Generation(namespace)
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.watches[namespace]
	switch {
	case c.ctx == nil || !ok && len(c.watches) >= maxWatches: // the pods are listed instead
		return nil, false
	case ok && (w.generation == generation || !w.pods.dependsOnCluster()): // their holdings are still the same
		w.asked = time.Now()
		return w, false
	case ok && w.isYoung(): // each start lists the pods: a cluster that changes on and on would do nothing else
		return nil, true
	case ok:
		w.cancel()
	}
	w = c.start(namespace, generation)
	c.watches[namespace] = w
	return w, false
}

// isYoung reports whether the watch is too young to be started again. Until it is, each batch of requests lists the pods.
func (w *namespaceWatch) isYoung() bool {
	age := time.Since(w.started)
	return age < minWatchAge || w.pods.pending() && age < maxWatchStart
}

// start starts the watch of a namespace. The caller holds c.mu.
func (c *ClusterWatcher) start(namespace string, generation any) *namespaceWatch {
	ctx, cancel := context.WithCancel(c.ctx)
	w := &namespaceWatch{pods: &watchedPods{holdingOf: c.HoldingOf, gone: c.Gone},
		cancel: cancel, started: time.Now(), asked: time.Now(), generation: generation}
	pods := reportedPods{c.Client.CoreV1().Pods(namespace), w.pods.broken}
	source := bounded.From(c.Client, pods, activeOnly).ListerWatcher(bounded.Kept{Name: "pods", Of: w.pods.shown, Gone: gonePod})
	reflector := cache.NewReflectorWithOptions(source, nil, w.pods,
		cache.ReflectorOptions{Name: "quota of namespace " + namespace, TypeDescription: "pods"})
	c.running.Go(func() { reflector.RunWithContext(ctx) })
	return w
}

// reportedPods reports the end of its watches.
type reportedPods struct {
	typedcorev1.PodInterface
	ended func()
}

// Watch implements bounded.Kind.
func (p reportedPods) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	events, err := p.PodInterface.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return reportedWatch{events, p.ended}, nil
}

// reportedWatch reports its end: a Reflector stops each watch that it has done with.
type reportedWatch struct {
	watch.Interface
	ended func()
}

// Stop implements watch.Interface.
func (w reportedWatch) Stop() {
	w.ended()
	w.Interface.Stop()
}
