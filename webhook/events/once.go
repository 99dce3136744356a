package events

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Component is the source of every Event that gpuslice writes.
const Component = "gpuslice"

// Event is an Event that is written once.
type Event struct {
	Object  corev1.ObjectReference
	Type    string
	Reason  string
	Message string
	Name    string // default: the reason and the object's UID
}

// Once writes an Event unless one of its name exists. The name does not depend on who writes, so that each Event is
// written once, whichever replica leads, for as long as the API server keeps Events.
func Once(ctx context.Context, client kubernetes.Interface, e Event) error {
	_, err := client.CoreV1().Events(e.Object.Namespace).Create(ctx, e.object(), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return e.failure(err)
}

// object is the Event as it is written for the first time.
func (e Event) object() *corev1.Event {
	now, o := metav1.Now(), e.Object
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: o.Namespace, Name: cmp.Or(e.Name, strings.ToLower(e.Reason)+"."+string(o.UID))},
		InvolvedObject: o, Reason: e.Reason, Message: e.Message, Type: e.Type, Source: corev1.EventSource{Component: Component},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}

func (e Event) failure(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write Event %s on %s %s/%s: %w", e.Reason, e.Object.Kind, e.Object.Namespace, e.Object.Name, err)
}
