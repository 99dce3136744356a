package e2e

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// await watches objects until one is as wanted.
func await[T runtime.Object](s *stage, resource, selector, what string, of T, wanted func(T) bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), within)
	defer cancel()
	list := cache.NewListWatchFromClient(s.node.Client.CoreV1().RESTClient(), resource, s.namespace, fields.ParseSelectorOrDie(selector))
	_, err := watchtools.UntilWithSync(ctx, list, of, nil, func(e watch.Event) (bool, error) {
		got, ok := e.Object.(T)
		return ok && e.Type != watch.Deleted && wanted(got), nil
	})
	if err != nil {
		s.Fatalf("wait for %s: %v", what, err)
	}
}

// awaitPod returns a pod as soon as it is as wanted.
func (s *stage) awaitPod(name, what string, wanted func(*corev1.Pod) bool) *corev1.Pod {
	s.Helper()
	var found *corev1.Pod
	await(s, "pods", "metadata.name="+name, what+" of pod "+name, &corev1.Pod{}, func(p *corev1.Pod) bool {
		if !wanted(p) {
			return false
		}
		found = p
		return true
	})
	return found
}

// awaitRunning returns a pod once all its containers run.
func (s *stage) awaitRunning(name string) *corev1.Pod {
	s.Helper()
	return s.awaitPod(name, "all containers", func(p *corev1.Pod) bool {
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Running == nil {
				return false
			}
		}
		return p.Status.Phase == corev1.PodRunning
	})
}

// awaitPhase returns a pod once it is in a phase.
func (s *stage) awaitPhase(name string, phase corev1.PodPhase) *corev1.Pod {
	s.Helper()
	return s.awaitPod(name, "phase "+string(phase), func(p *corev1.Pod) bool { return p.Status.Phase == phase })
}

// awaitEnd returns how a container ended, the first time if it was started again.
func (s *stage) awaitEnd(pod, container string) corev1.ContainerStateTerminated {
	s.Helper()
	var end *corev1.ContainerStateTerminated
	s.awaitPod(pod, "end of "+container, func(p *corev1.Pod) bool {
		have := status(p, container)
		if end = have.State.Terminated; end == nil {
			end = have.LastTerminationState.Terminated
		}
		return end != nil
	})
	return *end
}

// awaitGuard returns a pod whose guard has been started again and has looked at the devices since.
func (s *stage) awaitGuardAgain(pod string) *corev1.Pod {
	s.Helper()
	return s.awaitPod(pod, "guard that was started again", func(p *corev1.Pod) bool {
		g := status(p, limits.GuardContainer)
		return g.RestartCount > 0 && g.State.Running != nil && g.Started != nil && *g.Started
	})
}

// awaitEvent returns the first Event of a pod that is as wanted.
func (s *stage) awaitEvent(pod, what string, wanted func(*corev1.Event) bool) *corev1.Event {
	s.Helper()
	var found *corev1.Event
	await(s, "events", "involvedObject.name="+pod, "Event on pod "+pod+": "+what, &corev1.Event{}, func(e *corev1.Event) bool {
		if !wanted(e) {
			return false
		}
		found = e
		return true
	})
	return found
}

// countEvents counts the Events of a pod that are as wanted.
func (s *stage) countEvents(pod string, wanted func(*corev1.Event) bool) (n int) {
	s.Helper()
	list, err := s.node.Client.CoreV1().Events(s.namespace).List(s.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
	if err != nil {
		s.Fatal(err)
	}
	for i := range list.Items {
		if wanted(&list.Items[i]) {
			n++
		}
	}
	return n
}

// promptly is how soon the owner can read what the guard cannot rely on.
const promptly = 10 * time.Second
