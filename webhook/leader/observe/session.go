package observe

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"unique"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/gpuslice/gpuslice/webhook/events"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

// workers is how many pods are reconciled at once. Most reconciles make no request.
const workers = 2

// session is the work of a Controller while its replica leads: informers, a queue and the last observations. The queue has
// each pod once, so that it is no longer than the list of pods with a promise.
type session struct {
	*Controller
	Watch
	events      cache.SharedIndexInformer
	agentEvents cache.SharedIndexInformer
	queue       workqueue.TypedRateLimitingInterface[string]
	writer      eventWriter
	promises    promises
	relevance   relevance

	mu       sync.Mutex
	last     map[string]lastObservation // by namespace/name
	reported map[string]reported
	guarding map[string]unique.Handle[guardOn] // of the guards that run
	claimed  map[string]claimed                // by pods on a node
}

func newSession(c *Controller, from Watch) (*session, error) {
	client, full := c.options.Client, reportFull(c.options.Log)
	seen, agentEvents := watchEvents(client, full), watchAgentEvents(client, full)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](c.timing.backoff, c.timing.maxBackoff)
	s := &session{Controller: c, Watch: from, events: seen, agentEvents: agentEvents, last: map[string]lastObservation{},
		reported: map[string]reported{}, guarding: map[string]unique.Handle[guardOn]{}, claimed: map[string]claimed{},
		queue: workqueue.NewTypedRateLimitingQueue[string](limiter)}
	from.Agents.OnChange(s.enqueueNode) // before pods are read: later changes are seen
	if _, err := from.Pods.AddEventHandler(onPods(s.enqueue)); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	for _, informer := range []cache.SharedIndexInformer{seen, agentEvents} {
		if _, err := informer.AddEventHandler(onEvents(s.enqueue)); err != nil {
			return nil, fmt.Errorf("watch events: %w", err)
		}
	}
	return s, nil
}

// enqueue has the pod reconciled after a delay. Calls within the delay come to one reconcile.
func (s *session) enqueue(key string) { s.queue.AddAfter(key, s.timing.delay) }

// enqueueNode enqueues the pods on a node.
func (s *session) enqueueNode(name string) {
	objects, _ := s.Pods.GetIndexer().ByIndex(podcache.ByNode, name) // the informer has the index
	for _, object := range objects {
		enqueuePod(object, s.enqueue)
	}
}

// run observes until ctx is done, and waits for everything that it started.
func (s *session) run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer s.queue.ShutDown()
	nodes, err := s.options.Nodes.AddEventHandler(onNodes(s.relevance.changed, s.enqueueNode))
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	defer func() { _ = s.options.Nodes.RemoveEventHandler(nodes) }()
	running.Go(func() { s.events.RunWithContext(ctx) })
	running.Go(func() { s.agentEvents.RunWithContext(ctx) })
	s.writer = eventWriter{events.NewRecorder(ctx, s.options.Client), events.NewOwners(s.options.Client)}
	// Without all Events a guard that cannot enforce would pass for one that does, and without nodes each driver is unknown.
	if !cache.WaitForCacheSync(ctx.Done(), s.Pods.HasSynced, s.events.HasSynced,
		s.agentEvents.HasSynced, s.Agents.HasSynced, s.options.Nodes.HasSynced) {
		return nil
	}
	for range workers {
		running.Go(func() {
			for s.next(ctx) {
			}
		})
	}
	s.keepGuards(ctx)
	return nil
}

// next reconciles one pod from the queue. It reports whether the queue is still open.
func (s *session) next(ctx context.Context) bool {
	key, shutdown := s.queue.Get()
	if shutdown {
		return false
	}
	defer s.queue.Done(key)
	if ctx.Err() != nil {
		return true
	}
	if err := s.reconcile(ctx, key); err != nil {
		s.options.Log.Error(err, "cannot observe pod", "object", "Pod "+key)
		s.queue.AddRateLimited(key)
		return true
	}
	s.queue.Forget(key)
	return true
}

// reconcile observes one pod: it gathers facts, judges them, and reports the changes. A panic is an error like others:
// an odd pod must not stop the webhook that serves in the same process.
func (s *session) reconcile(ctx context.Context, key string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	f, err := s.gather(ctx, key)
	if err != nil {
		return err
	}
	if f == nil {
		s.forget(key)
		return nil
	}
	return s.report(ctx, f, judge(f))
}
