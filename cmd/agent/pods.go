package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// pods are the node's pods as the API server has them, and as it had them while it
// is away. They implement node.Pods.
type pods struct {
	log      *slog.Logger
	informer cache.SharedIndexInformer

	mu       sync.RWMutex
	promised map[string]node.Pod // by UID
}

// watchPods returns the pods of a node. Run keeps them up to date.
func watchPods(client kubernetes.Interface, nodeName string, log *slog.Logger) (*pods, error) {
	p := &pods{log: log, promised: map[string]node.Pod{}}
	p.informer = coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, nil, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", nodeName).String()
	})
	if err := p.informer.SetTransform(slim); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	_, err := p.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: p.put, UpdateFunc: func(_, object any) { p.put(object) }, DeleteFunc: p.remove,
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	return p, nil
}

// run keeps the pods up to date until ctx ends.
func (p *pods) run(ctx context.Context) { p.informer.RunWithContext(ctx) }

// synced reports whether the pods of the node were read once.
func (p *pods) synced() bool { return p.informer.HasSynced() }

// slim keeps what the agent reads of a pod.
func slim(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion}}
	if text := pod.Annotations[api.AnnotationPromise]; text != "" {
		out.Annotations = map[string]string{api.AnnotationPromise: text}
	}
	out.Status.Phase = pod.Status.Phase
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for i := range list {
			out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, corev1.ContainerStatus{Name: list[i].Name, ContainerID: list[i].ContainerID})
		}
	}
	return out, nil
}

func (p *pods) put(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	uid := string(pod.UID)
	promised, err := promisedBy(pod)
	if err != nil {
		p.log.Warn("the pod is only observed", "namespace", pod.Namespace, "pod", pod.Name, "error", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if promised == nil {
		delete(p.promised, uid)
		return
	}
	p.promised[uid] = *promised
}

func (p *pods) remove(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.promised, string(pod.UID))
}

// promisedBy returns what the agent enforces of a pod; nil: nothing. The
// validating webhook vouches for the promise in every governed namespace; who
// writes one elsewhere limits nobody but the pod itself.
func promisedBy(pod *corev1.Pod) (*node.Pod, error) {
	text := pod.Annotations[api.AnnotationPromise]
	if text == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil, nil
	}
	given, err := promise.Decode(text)
	if err != nil {
		return nil, err
	}
	if given.Namespace != pod.Namespace {
		return nil, fmt.Errorf("its promise is of namespace %q", given.Namespace)
	}
	if given.Guard == nil || !given.Guard.Agent {
		return nil, nil
	}
	l, err := given.Guard.Limits()
	if err != nil {
		return nil, err
	}
	return &node.Pod{UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Containers: containersOf(pod), Limits: l}, nil
}

// containersOf returns the names of a pod's containers by their IDs, which are
// "containerd://ID" in the pod's status.
func containersOf(pod *corev1.Pod) map[string]string {
	names := map[string]string{}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if _, id, found := strings.Cut(s.ContainerID, "://"); found {
			names[id] = s.Name
		}
	}
	return names
}

// Promised implements node.Pods.
func (p *pods) Promised() []node.Pod {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := make([]node.Pod, 0, len(p.promised))
	for _, pod := range p.promised {
		all = append(all, pod)
	}
	return all
}

// Promise implements node.Pods.
func (p *pods) Promise(uid string) (node.Pod, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pod, found := p.promised[uid]
	return pod, found
}
