package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
)

// place is a container on the node.
type place struct{ namespace, pod, container string }

// quiet and hog are the two pods of the node, as their files name them.
func quiet() place { return place{"demo-a", "quiet", "inference"} }
func hog() place   { return place{"demo-b", "hog", "trainer"} }

// until watches objects until one is as wanted.
func until[T runtime.Object](ctx context.Context, n *stageNode, resource string, p place,
	selector string, of T, wanted func(T) bool) error {
	list := cache.NewListWatchFromClient(n.Client.CoreV1().RESTClient(), resource, p.namespace, fields.ParseSelectorOrDie(selector))
	_, err := watchtools.UntilWithSync(ctx, list, of, nil, func(e watch.Event) (bool, error) {
		got, ok := e.Object.(T)
		return ok && wanted(got), nil
	})
	return err
}

// await returns a pod once it is as wanted.
func (n *stageNode) await(ctx context.Context, p place, what string, wanted func(*corev1.Pod) bool) (found *corev1.Pod, err error) {
	err = until(ctx, n, "pods", p, "metadata.name="+p.pod, &corev1.Pod{}, func(pod *corev1.Pod) bool {
		found = pod
		return wanted(pod)
	})
	if err != nil {
		return nil, fmt.Errorf("wait for %s of pod %s: %w", what, p.pod, err)
	}
	return found, nil
}

// ended returns how the hog ended.
func (n *stageNode) ended(ctx context.Context) (end *corev1.ContainerStateTerminated, err error) {
	_, err = n.await(ctx, hog(), "end", func(p *corev1.Pod) bool {
		for _, s := range p.Status.ContainerStatuses {
			if s.Name == hog().container {
				end = s.State.Terminated
			}
		}
		return end != nil
	})
	return end, err
}

// event returns the Event for the hog's owner.
func (n *stageNode) event(ctx context.Context) (found *corev1.Event, err error) {
	err = until(ctx, n, "events", hog(), "involvedObject.name="+hog().pod, &corev1.Event{}, func(e *corev1.Event) bool {
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
	stream, err := n.Client.CoreV1().Pods(hog().namespace).GetLogs(hog().pod,
		&corev1.PodLogOptions{Container: limits.GuardContainer, Follow: true}).Stream(ctx)
	if err != nil {
		return fmt.Errorf("follow the guard: %w", err)
	}
	defer stream.Close()
	return n.followLog(stream)
}

// followLog prints a guard's log until it has terminated something.
func (c clock) followLog(log io.Reader) error {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var l struct{ Msg, Message string }
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Message == "" {
			continue
		}
		c.say("guard of hog: %s", l.Message)
		if l.Msg == "termination result" {
			return nil
		}
	}
	return fmt.Errorf("the guard terminated nothing, and its log ended: %w", cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
}

// beats counts the heartbeats of a container, and those that are missing among them.
func (n *stageNode) beats(ctx context.Context, p place) (have, missing int, err error) {
	pod, err := n.Client.CoreV1().Pods(p.namespace).Get(ctx, p.pod, metav1.GetOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("get pod %s: %w", p.pod, err)
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Running == nil || s.RestartCount > 0 {
			return 0, 0, fmt.Errorf("%w: container %s is %+v", errNoticed, s.Name, s.State)
		}
	}
	text, err := n.Client.CoreV1().Pods(p.namespace).GetLogs(p.pod, &corev1.PodLogOptions{Container: p.container}).DoRaw(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("read log of pod %s: %w", p.pod, err)
	}
	have, missing = countBeats(string(text))
	return have, missing, nil
}

// countBeats counts the heartbeats in what a tenant printed, and those that are missing among them.
func countBeats(text string) (have, missing int) {
	last := 0
	for line := range strings.Lines(text) {
		var beat int
		if _, err := fmt.Sscanf(line, "beat %d ", &beat); err == nil {
			have, missing, last = have+1, missing+beat-last-1, beat
		}
	}
	return have, missing
}

// containerNames are the pod's containers in the order in which they start.
func containerNames(p *corev1.Pod) string {
	var names []string
	for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}
