// Package nodepods knows the pods of a node as the API server has them: which were promised a slice that the agent enforces, and which
// were given no device.
package nodepods

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// Pods are the node's pods as the API server last sent them. They implement node.Pods,
// and cache.TransformingStore: an informer would keep each pod twice, and all of those
// that were promised nothing.
type Pods struct {
	log       *slog.Logger
	reflector *cache.Reflector

	mu       sync.RWMutex
	listed   bool
	promised map[string]node.Pod // by UID
	bare     map[string]node.Pod // pods without a device, their names alone
}

// podsInPage is how many pods a page of a list has: anybody who may make pods can
// fill a node with pods of 1.5 MiB each, the most that etcd takes.
const podsInPage = 4

// New returns the pods of a node that have not terminated. Run keeps them up to date.
// Terminated pods are not sent: they stay, however many the node has room for.
func New(client kubernetes.Interface, nodeName string, log *slog.Logger) *Pods {
	p := &Pods{log: log, promised: map[string]node.Pod{}, bare: map[string]node.Pod{}}
	selector := fields.AndSelectors(fields.OneTermEqualSelector("spec.nodeName", nodeName),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))).String()
	all := client.CoreV1().Pods(metav1.NamespaceAll)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			return listPromised(ctx, all, selector)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return all.Watch(ctx, o)
		},
	}
	p.reflector = cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, client), &corev1.Pod{}, p,
		cache.ReflectorOptions{Name: "pods of node " + nodeName})
	return p
}

// listPromised lists pods where the API server cannot stream a list. Of each page it
// keeps the pods with a promise and the pods without a device. It sends no
// resource version: with one, the API server may answer from its cache, in one page.
func listPromised(ctx context.Context, pods typedcorev1.PodInterface, selector string) (*corev1.PodList, error) {
	all := &corev1.PodList{}
	for o := (metav1.ListOptions{FieldSelector: selector, Limit: podsInPage}); ; {
		page, err := pods.List(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		for i := range page.Items {
			if small := slim(&page.Items[i]); small.Annotations != nil {
				all.Items = append(all.Items, *small)
			}
		}
		all.ResourceVersion = page.ResourceVersion
		if o.Continue = page.Continue; o.Continue == "" {
			return all, nil
		}
	}
}

// Run keeps the pods up to date until ctx is done.
func (p *Pods) Run(ctx context.Context) { p.reflector.RunWithContext(ctx) }

// Synced reports whether the pods of the node were read once.
func (p *Pods) Synced() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.listed
}

// slim keeps the fields of a pod that the agent reads; without a promise, its name,
// and whether it has a device.
func slim(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace,
		UID: pod.UID, ResourceVersion: pod.ResourceVersion}}
	if hasNothing(pod) {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, nothingGiven, "")
	}
	text := pod.Annotations[api.AnnotationPromise]
	if text == "" {
		return out
	}
	if len(text) > promise.MaxText { // it is not read, and anybody may write one
		text = "too long"
	}
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, api.AnnotationPromise, text)
	out.Status.Phase = pod.Status.Phase
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses,
		pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for i := range list {
			out.Status.ContainerStatuses = append(out.Status.ContainerStatuses,
				corev1.ContainerStatus{Name: list[i].Name, ContainerID: list[i].ContainerID})
		}
	}
	return out
}

// Transformer implements cache.TransformingStore: a list that is streamed keeps no
// whole pods.
func (p *Pods) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			return slim(pod), nil
		}
		return object, nil
	}
}

// Add implements cache.ReflectorStore. A watch brings whole pods: the Transformer is
// for lists that are streamed.
func (p *Pods) Add(object any) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil
	}
	pod = slim(pod)
	promised := p.read(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(pod)
	p.put(pod, promised)
	return nil
}

func (p *Pods) forget(pod *corev1.Pod) {
	delete(p.promised, string(pod.UID))
	delete(p.bare, string(pod.UID))
}

func (p *Pods) put(pod *corev1.Pod, promised *node.Pod) {
	if promised != nil {
		p.promised[promised.UID] = *promised
	}
	if _, bare := pod.Annotations[nothingGiven]; bare {
		p.bare[string(pod.UID)] = node.Pod{UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name}
	}
}

// Update implements cache.ReflectorStore.
func (p *Pods) Update(object any) error { return p.Add(object) }

// Delete implements cache.ReflectorStore. A pod that terminates is shown as deleted.
func (p *Pods) Delete(object any) error {
	if pod, ok := object.(*corev1.Pod); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.forget(pod)
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (p *Pods) Replace(objects []any, _ string) error {
	all := &Pods{promised: map[string]node.Pod{}, bare: map[string]node.Pod{}}
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			all.put(pod, p.read(pod))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.promised, p.bare, p.listed = all.promised, all.bare, true
	return nil
}

// Resync implements cache.ReflectorStore.
func (p *Pods) Resync() error { return nil }

// read returns the part of a pod that the agent enforces; nil: nothing.
func (p *Pods) read(pod *corev1.Pod) *node.Pod {
	promised, err := promisedBy(pod)
	if err != nil {
		p.log.Warn("the pod is only observed", "namespace", pod.Namespace, "pod", pod.Name, "error", err)
	}
	return promised
}

// promisedBy returns the part of a pod that the agent enforces; nil: nothing. The
// validating webhook vouches for the promise in every governed namespace; a promise
// written elsewhere limits nobody but the pod itself.
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
func (p *Pods) Promised() []node.Pod {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Collect(maps.Values(p.promised))
}

// Promise implements node.Pods.
func (p *Pods) Promise(uid string) (node.Pod, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pod, found := p.promised[uid]
	return pod, found
}

// Bare returns a pod without a device, by its names alone.
func (p *Pods) Bare(uid string) (node.Pod, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pod, found := p.bare[uid]
	return pod, found
}
