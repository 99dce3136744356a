package observe

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/webhook/podcache"
)

// Indexes of the informers.
const (
	byNode = "node" // pods by node
	byPod  = "pod"  // Events by the pod they are about
)

// watchPods returns the informer of pods, of whose labels it caches one. Of pods without a promise it caches little more than
// their names: the API server cannot select pods by annotation.
func watchPods(client kubernetes.Interface, label string) (cache.SharedIndexInformer, error) {
	informer := coreinformers.NewPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{byNode: nodeOf})
	if err := informer.SetTransform(podcache.Transform(label)); err != nil {
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
	if pod, ok := object.(*podcache.Pod); ok && pod.Promised() && pod.Node() != "" {
		return []string{pod.Node()}, nil
	}
	return nil, nil
}

func podOf(object any) ([]string, error) {
	if e, ok := object.(*corev1.Event); ok {
		return []string{e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name}, nil
	}
	return nil, nil
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

// onGone calls gone with each pod with a promise or devices that ends, and with each pod that is deleted.
func onGone(gone func(namespace string, uid types.UID)) cache.ResourceEventHandler {
	call := func(object any, when func(*podcache.Pod) bool) {
		if pod, ok := object.(*podcache.Pod); ok && when(pod) {
			gone(pod.Namespace(), pod.UID)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) { call(object, (*podcache.Pod).Ended) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			call(object, func(*podcache.Pod) bool { return true })
		},
	}
}

func enqueuePod(object any, enqueue func(string)) {
	if pod, ok := object.(*podcache.Pod); ok && pod.Promised() {
		enqueue(pod.Namespace() + "/" + pod.Name)
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

// onNodes calls enqueue with the name of each node that is new or changed.
func onNodes(changed func(before, after *corev1.Node) bool, enqueue func(name string)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if node, ok := object.(*corev1.Node); ok {
				enqueue(node.Name)
			}
		},
		UpdateFunc: func(before, after any) {
			a, _ := before.(*corev1.Node)
			b, ok := after.(*corev1.Node)
			if ok && (a == nil || changed(a, b)) {
				enqueue(b.Name)
			}
		},
	}
}
