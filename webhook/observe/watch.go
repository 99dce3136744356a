package observe

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
)

// Indexes of the informers.
const (
	byNode = "node" // pods, by the node they were placed on
	byPod  = "pod"  // Events, by the pod they are about
)

// watchPods makes the informer of pods. Of those that carry no promise it keeps little more than their names: there is
// no way to ask the API server for pods with an annotation.
func watchPods(client kubernetes.Interface) (cache.SharedIndexInformer, error) {
	informer := coreinformers.NewPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{byNode: nodeOf})
	if err := informer.SetTransform(slimPod); err != nil {
		return nil, fmt.Errorf("set transform of pods: %w", err)
	}
	return informer, nil
}

// watchEvents makes the informer of the Events in which kubelets pass on what the guard says.
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

// slimPod keeps of a pod what Observe reads, and of one without a promise its name alone.
func slimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	meta := metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion}
	promise := pod.Annotations[policies.AnnotationPromise]
	if promise == "" {
		return &metav1.PartialObjectMetadata{ObjectMeta: meta}, nil
	}
	meta.DeletionTimestamp = pod.DeletionTimestamp
	meta.Annotations = map[string]string{policies.AnnotationPromise: promise}
	if observed, ok := pod.Annotations[policies.AnnotationObserved]; ok {
		meta.Annotations[policies.AnnotationObserved] = observed
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		meta.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return &corev1.Pod{
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, InitContainers: slimContainers(pod.Spec.InitContainers), Containers: slimContainers(pod.Spec.Containers),
		},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: pod.Status.Message,
			InitContainerStatuses: slimStatuses(pod.Status.InitContainerStatuses), ContainerStatuses: slimStatuses(pod.Status.ContainerStatuses),
		},
	}, nil
}

func slimContainers(list []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(list))
	for i := range list {
		out[i] = corev1.Container{Name: list[i].Name, Image: list[i].Image}
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

// slimEvent drops what no notice is read from.
func slimEvent(object any) (any, error) {
	if e, ok := object.(*corev1.Event); ok {
		e.ManagedFields, e.Annotations, e.Labels = nil, nil, nil
	}
	return object, nil
}

// onPods calls touch with the key of each pod that changed. Of pods without a promise only their going is told: one may
// have had a promise.
func onPods(touch func(key string)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, _ bool) { notifyPod(object, touch) },
		UpdateFunc: func(before, after any) {
			notifyPod(before, touch) // its promise may have been taken away
			notifyPod(after, touch)
		},
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
				touch(key)
			}
		},
	}
}

// onLeaving calls left with each pod that ends or is deleted.
func onGone(left func(namespace string, uid types.UID)) cache.ResourceEventHandler {
	ended := func(_, object any) {
		if pod, ok := object.(*corev1.Pod); ok && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed) {
			left(pod.Namespace, pod.UID)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: ended,
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if pod, ok := object.(metav1.Object); ok {
				left(pod.GetNamespace(), pod.GetUID())
			}
		},
	}
}

func notifyPod(object any, touch func(string)) {
	if pod, ok := object.(*corev1.Pod); ok {
		touch(pod.Namespace + "/" + pod.Name)
	}
}

// onEvents calls touch with the key of the pod that a new or changed Event is about. Events that expire change nothing.
func onEvents(touch func(key string)) cache.ResourceEventHandler {
	tell := func(object any) {
		if keys, _ := podOf(object); len(keys) > 0 {
			touch(keys[0])
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, object any) { tell(object) }}
}

// onNodes calls touch with the name of each node that is new or whose labels changed.
func onNodes(touch func(name string)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if node, ok := object.(*corev1.Node); ok {
				touch(node.Name)
			}
		},
		UpdateFunc: func(before, after any) {
			a, _ := before.(*corev1.Node)
			b, ok := after.(*corev1.Node)
			if ok && (a == nil || !maps.Equal(a.Labels, b.Labels)) {
				touch(b.Name)
			}
		},
	}
}
