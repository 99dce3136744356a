package observe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/webhook/events"
)

// Reasons of the Events.
const (
	ReasonDegraded       = "GPUSliceEnforcementDegraded"
	ReasonRestored       = "GPUSliceEnforcementRestored"
	ReasonGuardRestarted = "GPUSliceGuardRestarted"
)

// eventWriter writes Events about observations.
type eventWriter struct{ *events.Recorder }

// writeChanges writes what is new since before: each reason once, each restart of the guard, and that enforcement is as
// planned again.
func (w eventWriter) writeChanges(pod *corev1.Pod, before, o Observation) {
	for _, reason := range o.Reasons {
		if !slices.Contains(before.Reasons, reason) {
			w.write(pod, corev1.EventTypeWarning, ReasonDegraded, reason)
		}
	}
	if o.restarts() > before.restarts() && o.State != Ended {
		w.write(pod, corev1.EventTypeWarning, ReasonGuardRestarted, "gpuslice-guard was restarted after it ended with "+o.Guard.Ended+
			"; until it ran again no process was terminated: see the log of its previous run")
	}
	if before.State == Degraded && o.State == Enforced {
		w.write(pod, corev1.EventTypeNormal, ReasonRestored, "enforcement is as planned again: "+string(o.Tier))
	}
}

// write writes an Event on the pod and one on its owner.
func (w eventWriter) write(pod *corev1.Pod, eventType, reason, message string) {
	w.Write(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, eventType, reason, message)
	if owner := events.ControllerOf(pod); owner != nil {
		w.Write(owner, eventType, reason, "pod "+pod.Name+": "+message)
	}
}
