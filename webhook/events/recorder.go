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

// NewRecorder returns client-go's recorder, which writes until ctx is done. It counts repeated Events, combines similar ones,
// and allows each object a burst of 25 and one in five minutes after that; Events that come faster than they can be
// written are dropped. Its methods return at once.
func NewRecorder(ctx context.Context, client kubernetes.Interface) record.EventRecorder {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(metav1.NamespaceAll)})
	return b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: Component})
}

// ControllerOf returns a reference to the controller of an object in a namespace; nil if it has none.
func ControllerOf(object metav1.Object) *corev1.ObjectReference {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind,
		Namespace: object.GetNamespace(), Name: owner.Name, UID: owner.UID}
}
