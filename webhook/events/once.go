package events

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Once writes an Event on an object that has a UID. Its name is made of that and of the reason, so that each object is
// told once, whichever replica leads, for as long as the API server keeps Events.
func Once(ctx context.Context, client kubernetes.Interface, about *corev1.ObjectReference, kind, reason, sentence string) error {
	now := metav1.Now()
	_, err := client.CoreV1().Events(about.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: about.Namespace, Name: strings.ToLower(reason) + "." + string(about.UID)},
		InvolvedObject: *about, Reason: reason, Message: sentence, Type: kind, Source: corev1.EventSource{Component: "gpuslice"},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("write Event %s on %s %s/%s: %w", reason, about.Kind, about.Namespace, about.Name, err)
	}
	return nil
}
