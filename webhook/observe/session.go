package observe

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/gpuslice/gpuslice/webhook/events"
)

// workers look at pods side by side. Most looks cost no request.
const workers = 2

// term is one term of office: informers, a queue and what was observed, all of which end with it. The queue holds each
// pod once, so that it is no longer than the list of pods with a promise.
type session struct {
	*Controller
	pods, events cache.SharedIndexInformer
	queue        workqueue.TypedRateLimitingInterface[string]
	writer       eventWriter

	mu   sync.Mutex
	last map[string]lastObservation // by namespace/name
}

func newSession(c *Controller) (*session, error) {
	pods, err := watchPods(c.options.Client)
	if err != nil {
		return nil, err
	}
	events, err := watchEvents(c.options.Client)
	if err != nil {
		return nil, err
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](c.timing.backoff, c.timing.maxBackoff)
	t := &session{Controller: c, pods: pods, events: events, last: map[string]lastObservation{},
		queue: workqueue.NewTypedRateLimitingQueue[string](limiter)}
	if _, err := pods.AddEventHandler(onPods(t.enqueue)); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	if c.options.PodGone != nil {
		if _, err := pods.AddEventHandler(onGone(c.options.PodGone)); err != nil {
			return nil, fmt.Errorf("watch pods: %w", err)
		}
	}
	if _, err := events.AddEventHandler(onEvents(t.enqueue)); err != nil {
		return nil, fmt.Errorf("watch events: %w", err)
	}
	return t, nil
}

// touch asks for a look at the pod. Touches that come while one is due come to one look.
func (t *session) enqueue(key string) { t.queue.AddAfter(key, t.timing.delay) }

// touchNode asks for a look at the pods on a node.
func (t *session) enqueueNode(name string) {
	objects, err := t.pods.GetIndexer().ByIndex(byNode, name)
	if err != nil {
		return // the index is there: it is a constant
	}
	for _, object := range objects {
		notifyPod(object, t.enqueue)
	}
}

// run observes until ctx ends, and waits for everything that it started.
func (t *session) run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer t.queue.ShutDown()
	nodes, err := t.options.Nodes.AddEventHandler(onNodes(t.enqueueNode))
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	defer func() { _ = t.options.Nodes.RemoveEventHandler(nodes) }()
	running.Go(func() { t.pods.RunWithContext(ctx) })
	running.Go(func() { t.events.RunWithContext(ctx) })
	t.writer = eventWriter{events.NewRecorder(ctx, t.options.Client)}
	defer t.writer.Close()
	// Without all Events a blind guard would pass for one that sees, and without nodes every driver for an unknown one.
	if !cache.WaitForCacheSync(ctx.Done(), t.pods.HasSynced, t.events.HasSynced, t.options.Nodes.HasSynced) {
		return nil
	}
	for range workers {
		running.Go(func() {
			for t.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

// next takes one pod from the queue and looks at it. It returns false once the queue is shut down.
func (t *session) next(ctx context.Context) bool {
	key, over := t.queue.Get()
	if over {
		return false
	}
	defer t.queue.Done(key)
	if ctx.Err() != nil {
		return true
	}
	if err := t.reconcile(ctx, key); err != nil {
		t.options.Log.Error(err, "pod not observed", "pod", key)
		t.queue.AddRateLimited(key)
		return true
	}
	t.queue.Forget(key)
	return true
}

// node is a node as the informer knows it; nil: it does not.
func (t *session) node(name string) *corev1.Node {
	object, _, _ := t.options.Nodes.GetStore().GetByKey(name)
	node, _ := object.(*corev1.Node)
	return node
}

// notices are those of a pod that Events tell, and those remembered.
func (t *session) notices(pod *corev1.Pod, before Observation) []Notice {
	out := slices.Clone(before.Notices)
	objects, _ := t.events.GetIndexer().ByIndex(byPod, pod.Namespace+"/"+pod.Name)
	for _, object := range objects {
		if e, ok := object.(*corev1.Event); ok && e.InvolvedObject.UID == pod.UID {
			out = append(out, NoticesOf(e)...)
		}
	}
	return out
}
