package events

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// Recorder writes Events. client-go's recorder counts repeated ones, combines similar ones, and allows each object a
// burst of 25 and one in five minutes after that; Events that come faster than they can be written are dropped.
type Recorder struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
}

// NewRecorder starts a Recorder, which writes until ctx ends or Close is called.
func NewRecorder(ctx context.Context, client kubernetes.Interface) *Recorder {
	return NewNodeRecorder(ctx, client, "")
}

// NewNodeRecorder is NewRecorder for Events from a node.
func NewNodeRecorder(ctx context.Context, client kubernetes.Interface, node string) *Recorder {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(metav1.NamespaceAll)})
	return &Recorder{broadcaster: b, recorder: b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: Component, Host: node})}
}

// Close ends the Recorder.
func (r *Recorder) Close() { r.broadcaster.Shutdown() }

// Write queues an Event and returns at once.
func (r *Recorder) Write(object *corev1.ObjectReference, eventType, reason, message string) {
	r.recorder.Event(object, eventType, reason, message)
}

// ControllerOf returns a reference to the controller of an object in a namespace; nil if it has none.
func ControllerOf(object metav1.Object) *corev1.ObjectReference {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: object.GetNamespace(), Name: owner.Name, UID: owner.UID}
}
