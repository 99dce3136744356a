package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/node"
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
)

// remedy is what the owner of a pod that is over its slice, or near it, can do.
const remedy = "; use less memory, or request a larger slice with the label gpuslice.dev/memory"

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
	case guard.Unmanaged, guard.Unnamed:
		return warning(reasonUnmanaged)
	case guard.NotEnforcing:
		return warning(reasonNotEnforcing)
	}
	return corev1.EventTypeNormal, reasonEnforcing, e.Message()
}

func eventOfOutcome(e guard.Event) (eventType, reason, message string) {
	switch e.Outcome.Result {
	case guard.Terminated:
		return corev1.EventTypeWarning, reasonTerminated, e.Message() + remedy
	case guard.DryRun:
		return corev1.EventTypeWarning, reasonDryRun, e.Message()
	}
	return corev1.EventTypeWarning, reasonNotTerminated, e.Message()
}

func referenceTo(p node.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID)}
}
