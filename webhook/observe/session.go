package observe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/gpuslice/gpuslice/webhook/events"
	"github.com/gpuslice/gpuslice/webhook/nodelease"
	"github.com/gpuslice/gpuslice/webhook/usage"
)

// workers is how many pods are reconciled at once. Most reconciles make no request.
const workers = 2

// session is the work of a Controller while its replica leads: informers, a queue and the last observations. The queue holds
// each pod once, so that it is no longer than the list of pods with a promise.
type session struct {
	*Controller
	pods, events cache.SharedIndexInformer
	agentEvents  cache.SharedIndexInformer
	agents       *nodelease.Follower
	queue        workqueue.TypedRateLimitingInterface[string]
	writer       eventWriter
	promises     promises
	relevance    relevance

	mu       sync.Mutex
	last     map[string]lastObservation // by namespace/name
	reported map[string]reported
	guarding map[string]unique.Handle[guardOn] // of the guards that run
	claimed  map[string]claimed                // by pods on a node
}

func newSession(c *Controller) (*session, error) {
	client, full := c.options.Client, reportFull(c.options.Log)
	pods, events, agentEvents := watchPods(client, c.options.Usage.PodLabel(), full), watchEvents(client, full), watchAgentEvents(client, full)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](c.timing.backoff, c.timing.maxBackoff)
	s := &session{Controller: c, pods: pods, events: events, agentEvents: agentEvents, last: map[string]lastObservation{}, reported: map[string]reported{}, guarding: map[string]unique.Handle[guardOn]{}, claimed: map[string]claimed{},
		queue: workqueue.NewTypedRateLimitingQueue[string](limiter)}
	var err error
	if s.agents, err = nodelease.Follow(c.options.Client, c.options.Namespace, s.enqueueNode); err != nil {
		return nil, err
	}
	if _, err := pods.AddEventHandler(onPods(s.enqueue)); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	if c.options.PodGone != nil {
		if _, err := pods.AddEventHandler(onGone(c.options.PodGone)); err != nil {
			return nil, fmt.Errorf("watch pods: %w", err)
		}
	}
	for _, informer := range []cache.SharedIndexInformer{events, agentEvents} {
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
	objects, err := s.pods.GetIndexer().ByIndex(byNode, name)
	if err != nil {
		return // cannot happen: the informer has the index
	}
	for _, object := range objects {
		enqueuePod(object, s.enqueue)
	}
}

// run observes until ctx ends, and waits for everything that it started.
func (s *session) run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer s.queue.ShutDown()
	nodes, err := s.options.Nodes.AddEventHandler(onNodes(s.relevance.changed, s.enqueueNode))
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	defer func() { _ = s.options.Nodes.RemoveEventHandler(nodes) }()
	running.Go(func() { s.pods.RunWithContext(ctx) })
	running.Go(func() { s.events.RunWithContext(ctx) })
	running.Go(func() { s.agentEvents.RunWithContext(ctx) })
	running.Go(func() { s.agents.Run(ctx) })
	running.Go(func() { s.countUsage(ctx) })
	s.writer = eventWriter{events.NewRecorder(ctx, s.options.Client), events.NewOwners(s.options.Client)}
	defer s.writer.Close()
	// Without all Events a guard that cannot enforce would pass for one that does, and without nodes each driver is unknown.
	if !cache.WaitForCacheSync(ctx.Done(), s.pods.HasSynced, s.events.HasSynced, s.agentEvents.HasSynced, s.agents.HasSynced, s.options.Nodes.HasSynced) {
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

// countUsage counts what pods hold until ctx ends.
func (s *session) countUsage(ctx context.Context) {
	if s.options.Usage == nil {
		return
	}
	err := s.options.Usage.Run(ctx, usage.Watch{Pods: s.pods, Used: s.agents.Used})
	if err != nil && ctx.Err() == nil {
		s.options.Log.Error(err, "usage is not counted")
	}
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

// place returns what the informers know of a node.
func (s *session) place(pod *corev1.Pod) Place {
	name := pod.Spec.NodeName
	object, _, _ := s.options.Nodes.GetStore().GetByKey(name)
	node, _ := object.(*corev1.Node)
	return Place{Node: node, Agent: s.agents.Enforces(name), NotEnforced: s.agents.NotEnforced(name, string(pod.UID))}
}

// notices returns the notices of a pod from Events, and those of the previous observation.
func (s *session) notices(pod *corev1.Pod, before Observation) []Notice {
	out := slices.Clone(before.Notices)
	for _, e := range eventsIn(s.events, pod) {
		out = append(out, NoticesOf(e)...)
	}
	return out
}

// eventsIn returns the Events about the pod that an informer has.
func eventsIn(informer cache.SharedIndexInformer, pod *corev1.Pod) (out []*corev1.Event) {
	objects, _ := informer.GetIndexer().ByIndex(byPod, pod.Namespace+"/"+pod.Name)
	for _, object := range objects {
		if e, ok := object.(*corev1.Event); ok && e.InvolvedObject.UID == pod.UID {
			out = append(out, e)
		}
	}
	return out
}
