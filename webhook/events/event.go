package events

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
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

// Again writes an Event, or counts it if one of its name exists, which then has the last message. The name does not
// depend on the writer: reports of several replicas are one Event.
func Again(ctx context.Context, client kubernetes.Interface, e Event) error {
	event := e.object()
	api := client.CoreV1().Events(event.Namespace)
	_, err := api.Create(ctx, event, metav1.CreateOptions{})
	for try := 0; try < maxTries && (apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)); try++ {
		err = countOnce(ctx, client, event)
	}
	return e.failure(err)
}

// maxTries bounds how often replicas that count the same Event at once get in each other's way.
const maxTries = 5

// countOnce adds one to the Event that has the name.
func countOnce(ctx context.Context, client kubernetes.Interface, event *corev1.Event) error {
	api := client.CoreV1().Events(event.Namespace)
	list, err := api.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, event.Name).String()})
	if err != nil {
		return err
	}
	for i := range list.Items {
		there := &list.Items[i]
		if there.Name != event.Name {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": there.ResourceVersion},
			"count": there.Count + 1, "lastTimestamp": event.LastTimestamp, "message": event.Message})
		if err != nil {
			return fmt.Errorf("encode patch: %w", err)
		}
		_, err = api.Patch(ctx, event.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	_, err = api.Create(ctx, event, metav1.CreateOptions{}) // it has expired meanwhile
	return err
}
