package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/node"
)

// Reasons of the Events on pods, and on the node.
const (
	reasonNearLimit     = "GPUSliceNearLimit"
	reasonTerminated    = "GPUSliceTerminated"
	reasonDryRun        = "GPUSliceDryRun"
	reasonNotTerminated = "GPUSliceNotTerminated"
	reasonOutOfMemory   = "GPUSliceOutOfMemory"
	reasonNotReleased   = "GPUSliceMemoryNotReleased"
	reasonUnmanaged     = "GPUSliceUnmanaged"
	reasonNotEnforcing  = "GPUSliceNotEnforcing"
	reasonEnforcing     = "GPUSliceEnforcing"
	reasonIdle          = "GPUSliceIdle"
)

// remedy is the remedy for the owner of a pod that is over its slice, or near it.
const remedy = "; use less memory, or request a larger slice with the label gpuslice.dev/memory"

// idleRemedy is the remedy for the owner of a slice in which nothing ran.
const idleRemedy = "; start it again when it has something to run, or have the policy's idle.terminate raised"

// eventOf returns type, reason and message of the Event that reports a guard's event to the owner of the pod.
func eventOf(e guard.Event) (eventType, reason, message string) {
	warning := func(reason string) (string, string, string) { return corev1.EventTypeWarning, reason, e.Message() }
	switch e.Kind {
	case guard.NearLimit:
		return corev1.EventTypeWarning, reasonNearLimit, e.Message() + remedy
	case guard.TerminationResult:
		return eventOfOutcome(e)
	case guard.NotTerminated:
		return warning(reasonNotTerminated)
	case guard.OOMWithinSlice:
		return warning(reasonOutOfMemory)
	case guard.MemoryNotReleased:
		return warning(reasonNotReleased)
	case guard.Unmanaged, guard.Unnamed, guard.OfNobody:
		return warning(reasonUnmanaged)
	case guard.NotEnforcing:
		return warning(reasonNotEnforcing)
	}
	return corev1.EventTypeNormal, reasonEnforcing, e.Message()
}

// eventSource is the source of the Events, by which the webhook knows them.
const eventSource = "gpuslice"

// eventWriter writes Events by client-go's recorder, which combines similar ones,
// allows each object a burst of 25 and then one in five minutes, and drops any that
// come faster than they can be written. Terminations have a recorder of their own:
// however many other Events a tenant causes, none takes the place of these.
type eventWriter struct {
	broadcasters         []record.EventBroadcaster
	terminations, others record.EventRecorder
}

func newEventWriter(ctx context.Context, client kubernetes.Interface, nodeName string) *eventWriter {
	w := &eventWriter{}
	w.terminations, w.others = w.start(ctx, client, nodeName), w.start(ctx, client, nodeName)
	return w
}

func (w *eventWriter) start(ctx context.Context, client kubernetes.Interface, nodeName string) record.EventRecorder {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(metav1.NamespaceAll)})
	w.broadcasters = append(w.broadcasters, b)
	return b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: eventSource, Host: nodeName})
}

// Write queues an Event and returns at once.
func (w *eventWriter) Write(object *corev1.ObjectReference, eventType, reason, message string) {
	recorder := w.others
	if reason == reasonTerminated {
		recorder = w.terminations
	}
	recorder.Event(object, eventType, reason, message)
}

// Close stops the writer.
func (w *eventWriter) Close() {
	for _, b := range w.broadcasters {
		b.Shutdown()
	}
}

func eventOfOutcome(e guard.Event) (eventType, reason, message string) {
	switch e.Outcome.Result {
	case guard.Terminated:
		if !e.Outcome.Order.Idle.Since.IsZero() {
			return corev1.EventTypeWarning, reasonTerminated, e.Message() + idleRemedy
		}
		return corev1.EventTypeWarning, reasonTerminated, e.Message() + remedy
	case guard.DryRun:
		return corev1.EventTypeWarning, reasonDryRun, e.Message()
	}
	return corev1.EventTypeWarning, reasonNotTerminated, e.Message()
}

// referenceToNode is as the kubelet's: kubectl describe finds Events of nodes by that UID.
func referenceToNode(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}

func referenceTo(p node.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID)}
}
