package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/webhook/events"
)

// Reasons of the Events on pods.
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

// remedy is what the owner of a pod that is over its slice, or near it, can do.
const remedy = "; use less memory, or request a larger slice with the label gpuslice.dev/memory"

// idleRemedy is what the owner of a slice in which nothing ran can do.
const idleRemedy = "; start it again when it has something to run, or have the policy's idle.terminate raised"

// eventOf returns reason, type and message of the Event about what a guard
// reports.
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

// eventWriter writes Events. Of terminations it does so by a recorder of their own:
// however many others a tenant brings about, none takes the place of these.
type eventWriter struct{ terminations, others *events.Recorder }

func newEventWriter(ctx context.Context, client kubernetes.Interface, nodeName string) eventWriter {
	return eventWriter{events.NewNodeRecorder(ctx, client, nodeName), events.NewNodeRecorder(ctx, client, nodeName)}
}

// Write queues an Event and returns at once.
func (w eventWriter) Write(object *corev1.ObjectReference, eventType, reason, message string) {
	recorder := w.others
	if reason == reasonTerminated {
		recorder = w.terminations
	}
	recorder.Write(object, eventType, reason, message)
}

// Close ends the writer.
func (w eventWriter) Close() {
	w.terminations.Close()
	w.others.Close()
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
