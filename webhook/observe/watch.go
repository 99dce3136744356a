package observe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Indexes of the informers.
const (
	byNode = "node" // pods by node
	byPod  = "pod"  // Events by the pod they are about
)

// watchPods returns the informer of pods, of whose labels it caches one. Of pods without a promise or devices it caches
// little more than their names: the API server cannot select pods by annotation.
func watchPods(client kubernetes.Interface, label string) (cache.SharedIndexInformer, error) {
	informer := coreinformers.NewPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{byNode: nodeOf})
	if err := informer.SetTransform(func(object any) (any, error) { return slimPod(object, label) }); err != nil {
		return nil, fmt.Errorf("set transform of pods: %w", err)
	}
	return informer, nil
}

// watchEvents returns the informer of the Events in which kubelets report the guard's notices.
func watchEvents(client kubernetes.Interface) (cache.SharedIndexInformer, error) {
	about := fields.Set{"involvedObject.kind": "Pod", "involvedObject.fieldPath": guardField, "reason": unhealthy}
	informer := coreinformers.NewFilteredEventInformer(client, metav1.NamespaceAll, 0, cache.Indexers{byPod: podOf},
		func(o *metav1.ListOptions) { o.FieldSelector = about.AsSelector().String() })
	if err := informer.SetTransform(slimEvent); err != nil {
		return nil, fmt.Errorf("set transform of events: %w", err)
	}
	return informer, nil
}

func nodeOf(object any) ([]string, error) {
	if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}, nil
	}
	return nil, nil
}

func podOf(object any) ([]string, error) {
	if e, ok := object.(*corev1.Event); ok {
		return []string{e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name}, nil
	}
	return nil, nil
}

// slimPod keeps the fields of a pod that Observe and usage read, with one label, and the name alone of one with neither a promise nor devices.
func slimPod(object any, label string) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	meta := metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion}
	promise := pod.Annotations[api.AnnotationPromise]
	if promise == "" && !namesDevices(pod) {
		return &metav1.PartialObjectMetadata{ObjectMeta: meta}, nil
	}
	meta.DeletionTimestamp, meta.CreationTimestamp = pod.DeletionTimestamp, pod.CreationTimestamp
	if value, ok := pod.Labels[label]; ok {
		meta.Labels = map[string]string{label: value}
	}
	if promise != "" {
		meta.Annotations = map[string]string{api.AnnotationPromise: promise}
		for _, name := range []string{api.AnnotationPlanned, api.AnnotationObserved, api.AnnotationSummary} {
			if text, ok := pod.Annotations[name]; ok {
				meta.Annotations[name] = text
			}
		}
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		meta.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return &corev1.Pod{
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, RuntimeClassName: pod.Spec.RuntimeClassName,
			InitContainers: slimContainers(pod.Spec.InitContainers, promise == ""), Containers: slimContainers(pod.Spec.Containers, promise == ""),
		},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: pod.Status.Message, StartTime: pod.Status.StartTime,
			Conditions:            slimConditions(pod.Status.Conditions),
			InitContainerStatuses: slimStatuses(pod.Status.InitContainerStatuses), ContainerStatuses: slimStatuses(pod.Status.ContainerStatuses),
		},
	}, nil
}

// slimContainers keeps what devices containers name where no promise has it.
func slimContainers(list []corev1.Container, devices bool) []corev1.Container {
	out := make([]corev1.Container, len(list))
	for i := range list {
		out[i] = corev1.Container{Name: list[i].Name, Image: list[i].Image, RestartPolicy: list[i].RestartPolicy}
		if devices {
			out[i].Resources.Limits = devicesOf(&list[i])
		}
	}
	return out
}

// devicesOf are the extended resources that a container names. Which of them are GPUs depends on the pools.
func devicesOf(c *corev1.Container) (out corev1.ResourceList) {
	for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		for name, q := range list {
			if strings.Contains(string(name), "/") && !q.IsZero() {
				if out == nil {
					out = corev1.ResourceList{}
				}
				out[name] = q
			}
		}
	}
	return out
}

// namesDevices reports whether the pod may hold devices without a promise.
func namesDevices(pod *corev1.Pod) bool {
	names := func(c corev1.Container) bool { return len(devicesOf(&c)) > 0 }
	return slices.ContainsFunc(pod.Spec.Containers, names) || slices.ContainsFunc(pod.Spec.InitContainers, names)
}

// slimConditions keeps when the pod was scheduled.
func slimConditions(list []corev1.PodCondition) (out []corev1.PodCondition) {
	for i := range list {
		if c := &list[i]; c.Type == corev1.PodScheduled {
			out = append(out, corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return out
}

func slimStatuses(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, len(list))
	for i := range list {
		s := &list[i]
		out[i] = corev1.ContainerStatus{Name: s.Name, State: s.State, LastTerminationState: s.LastTerminationState, RestartCount: s.RestartCount, Started: s.Started}
	}
	return out
}

// slimEvent drops the fields that no notice is read from.
func slimEvent(object any) (any, error) {
	if e, ok := object.(*corev1.Event); ok {
		e.ManagedFields, e.Annotations, e.Labels = nil, nil, nil
	}
	return object, nil
}

// onPods calls enqueue with the key of each pod with a promise that changed, and of each pod that was deleted: it may have
// had a promise.
func onPods(enqueue func(key string)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, _ bool) { enqueuePod(object, enqueue) },
		UpdateFunc: func(before, after any) {
			enqueuePod(before, enqueue) // its promise may have been removed
			enqueuePod(after, enqueue)
		},
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
				enqueue(key)
			}
		},
	}
}

// onGone calls gone with each pod that ends or is deleted.
func onGone(gone func(namespace string, uid types.UID)) cache.ResourceEventHandler {
	ended := func(_, object any) {
		if pod, ok := object.(*corev1.Pod); ok && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed) {
			gone(pod.Namespace, pod.UID)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: ended,
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if pod, ok := object.(metav1.Object); ok {
				gone(pod.GetNamespace(), pod.GetUID())
			}
		},
	}
}

func enqueuePod(object any, enqueue func(string)) {
	if pod, ok := object.(*corev1.Pod); ok {
		enqueue(pod.Namespace + "/" + pod.Name)
	}
}

// onEvents calls enqueue with the key of the pod of each new or changed Event. An Event that expires changes nothing.
func onEvents(enqueue func(key string)) cache.ResourceEventHandler {
	handle := func(object any) {
		if keys, _ := podOf(object); len(keys) > 0 {
			enqueue(keys[0])
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, object any) { handle(object) }}
}

// onNodes calls enqueue with the name of each node that is new or whose labels changed.
func onNodes(enqueue func(name string)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if node, ok := object.(*corev1.Node); ok {
				enqueue(node.Name)
			}
		},
		UpdateFunc: func(before, after any) {
			a, _ := before.(*corev1.Node)
			b, ok := after.(*corev1.Node)
			if ok && (a == nil || !maps.Equal(a.Labels, b.Labels)) {
				enqueue(b.Name)
			}
		},
	}
}
