package observe

import (
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/webhook/bounded"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

// byPod is the index of Events by the pod they are about.
const byPod = "pod"

// Bounds on copies: whoever may write Events chooses how large they are.
const (
	maxEvents  = 16 << 20 // bytes of all Events of a kind
	maxMessage = 16 << 10 // bytes of one's message: kubelets report at most 10 KiB of a probe
	maxField   = 512      // bytes of another field: no Event of kubelets or agents has a larger one
)

// watchEvents returns the informer of the Events in which kubelets report the guard's notices.
func watchEvents(client kubernetes.Interface, full func(kind, namespace string)) cache.SharedIndexInformer {
	return eventsAbout(client, full, "Events of guards",
		fields.Set{"involvedObject.kind": "Pod", "involvedObject.fieldPath": guardField, "reason": unhealthy})
}

func eventsAbout(client kubernetes.Interface, full func(kind, namespace string), name string, about fields.Set) cache.SharedIndexInformer {
	narrow := func(o *metav1.ListOptions) { o.FieldSelector = about.AsSelector().String() }
	return bounded.From(client, client.CoreV1().Events(metav1.NamespaceAll), narrow).Informer(
		bounded.Kept{Name: name, Of: slimEvent, Bytes: maxEvents, Full: full}, cache.Indexers{byPod: podOf})
}

// reportFull returns the function that reports a namespace with more than the bounds allow.
func reportFull(log logr.Logger) func(kind, namespace string) {
	return func(kind, namespace string) {
		log.Info("not all objects of a namespace are observed, since they are too many or too large",
			"kind", kind, "object", "Namespace "+namespace)
	}
}

func podOf(object any) ([]string, error) {
	if e, ok := object.(*corev1.Event); ok {
		return []string{e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name}, nil
	}
	return nil, nil
}

// slimEvent keeps the fields that notices are read from.
func slimEvent(object runtime.Object) (runtime.Object, int) {
	e, ok := object.(*corev1.Event)
	if !ok {
		return object, 0
	}
	about := e.InvolvedObject
	kept := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name,
			ResourceVersion: e.ResourceVersion, CreationTimestamp: e.CreationTimestamp},
		InvolvedObject: corev1.ObjectReference{Kind: about.Kind, Namespace: about.Namespace,
			Name: about.Name, UID: about.UID, FieldPath: about.FieldPath},
		Reason: e.Reason, Source: e.Source, FirstTimestamp: e.FirstTimestamp,
		LastTimestamp: e.LastTimestamp, EventTime: e.EventTime, Type: e.Type, ReportingController: e.ReportingController,
	}
	for _, field := range []string{e.Namespace, e.Name, about.Kind, about.Namespace,
		about.Name, string(about.UID), about.FieldPath, e.Reason, e.Source.Component, e.Source.Host, e.Type, e.ReportingController} {
		if len(field) > maxField {
			return nil, 0
		}
	}
	kept.Message = strings.Clone(e.Message[:min(len(e.Message), maxMessage)]) // a copy: a part would keep the whole
	return kept, kept.Size() + 1<<10
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
