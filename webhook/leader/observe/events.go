package observe

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/gpuslice/gpuslice/webhook/events"
)

// Reasons of the Events.
const (
	ReasonDegraded       = "GPUSliceEnforcementDegraded"
	ReasonRestored       = "GPUSliceEnforcementRestored"
	ReasonBetter         = "GPUSliceBetterThanPlanned"
	ReasonGuardRestarted = "GPUSliceGuardRestarted"
)

// eventWriter writes Events about observations.
type eventWriter struct {
	record.EventRecorder
	owners *events.Owners
}

// writeChanges writes the changes since before: each reason once, each restart of the guard, and that enforcement is as
// planned again.
func (w eventWriter) writeChanges(ctx context.Context, pod *corev1.Pod, before, o Observation) {
	for _, reason := range o.Reasons {
		if !slices.Contains(before.Reasons, reason) {
			w.write(ctx, pod, corev1.EventTypeWarning, ReasonDegraded, reason)
		}
	}
	for _, better := range o.Better {
		if !slices.Contains(before.Better, better) {
			w.write(ctx, pod, corev1.EventTypeNormal, ReasonBetter, better)
		}
	}
	if o.restarts() > before.restarts() && o.State != Ended {
		w.write(ctx, pod, corev1.EventTypeWarning, ReasonGuardRestarted, "gpuslice-guard was restarted after it ended with "+o.Guard.Ended+
			"; until it ran again no process was terminated: see the log of its previous run")
	}
	if before.State == Degraded && o.State == Enforced {
		w.write(ctx, pod, corev1.EventTypeNormal, ReasonRestored, "enforcement is as planned again: "+string(o.Tier))
	}
}

// write writes an Event on the pod and one on each owner.
func (w eventWriter) write(ctx context.Context, pod *corev1.Pod, eventType, reason, message string) {
	w.Event(new(podReference(pod)), eventType, reason, message)
	for _, owner := range w.owners.Of(ctx, pod) {
		w.Event(&owner, eventType, reason, "pod "+pod.Name+": "+message)
	}
}

func podReference(pod *corev1.Pod) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}
