package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/demo"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
)

// until watches objects until one is as wanted.
func until[T runtime.Object](ctx context.Context, n *stageNode, resource string, p demo.Place,
	selector string, of T, wanted func(T) bool) error {
	list := cache.NewListWatchFromClient(n.Client.CoreV1().RESTClient(), resource, p.Namespace, fields.ParseSelectorOrDie(selector))
	_, err := watchtools.UntilWithSync(ctx, list, of, nil, func(e watch.Event) (bool, error) {
		got, ok := e.Object.(T)
		return ok && wanted(got), nil
	})
	return err
}

// await returns a pod once it is as wanted.
func (n *stageNode) await(ctx context.Context, p demo.Place, what string, wanted func(*corev1.Pod) bool) (found *corev1.Pod, err error) {
	err = until(ctx, n, "pods", p, "metadata.name="+p.Pod, &corev1.Pod{}, func(pod *corev1.Pod) bool {
		found = pod
		return wanted(pod)
	})
	if err != nil {
		return nil, fmt.Errorf("wait for %s of pod %s: %w", what, p.Pod, err)
	}
	return found, nil
}

// ended returns how the hog ended.
func (n *stageNode) ended(ctx context.Context) (end *corev1.ContainerStateTerminated, err error) {
	_, err = n.await(ctx, demo.Hog(), "end", func(p *corev1.Pod) bool {
		for _, s := range p.Status.ContainerStatuses {
			if s.Name == demo.Hog().Container {
				end = s.State.Terminated
			}
		}
		return end != nil
	})
	return end, err
}

// event returns the Event for the hog's owner.
func (n *stageNode) event(ctx context.Context) (found *corev1.Event, err error) {
	err = until(ctx, n, "events", demo.Hog(), "involvedObject.name="+demo.Hog().Pod, &corev1.Event{}, func(e *corev1.Event) bool {
		found = e
		return e.Reason == observe.ReasonTerminated
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the Event: %w", err)
	}
	return found, nil
}

// followGuard prints what the hog's guard reports until it has terminated something.
func (n *stageNode) followGuard(ctx context.Context) error {
	stream, err := n.Client.CoreV1().Pods(demo.Hog().Namespace).GetLogs(demo.Hog().Pod,
		&corev1.PodLogOptions{Container: limits.GuardContainer, Follow: true}).Stream(ctx)
	if err != nil {
		return fmt.Errorf("follow the guard: %w", err)
	}
	defer stream.Close()
	return n.FollowLog(stream)
}

// beats counts the heartbeats of a container, and those that are missing among them.
func (n *stageNode) beats(ctx context.Context, p demo.Place) (have, missing int, err error) {
	pod, err := n.Client.CoreV1().Pods(p.Namespace).Get(ctx, p.Pod, metav1.GetOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("get pod %s: %w", p.Pod, err)
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Running == nil || s.RestartCount > 0 {
			return 0, 0, fmt.Errorf("%w: container %s is %+v", demo.ErrNoticed, s.Name, s.State)
		}
	}
	text, err := n.Client.CoreV1().Pods(p.Namespace).GetLogs(p.Pod, &corev1.PodLogOptions{Container: p.Container}).DoRaw(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("read log of pod %s: %w", p.Pod, err)
	}
	have, missing = demo.CountBeats(string(text))
	return have, missing, nil
}

// containerNames are the pod's containers in the order in which they start.
func containerNames(p *corev1.Pod) string {
	var names []string
	for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}
