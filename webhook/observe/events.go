package observe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/webhook/events"
)

// Reasons of the Events.
const (
	ReasonDegraded       = "EnforcementWeaker"
	ReasonRestored       = "EnforcementHolds"
	ReasonGuardRestarted = "GuardRestarted"
)

// voice says what is observed.
type eventWriter struct{ *events.Recorder }

// tell says what is new since before: each reason once, each restart of the guard, and that all holds again.
func (v eventWriter) writeChanges(pod *corev1.Pod, before, o Observation) {
	for _, reason := range o.Reasons {
		if !slices.Contains(before.Reasons, reason) {
			v.write(pod, corev1.EventTypeWarning, ReasonDegraded, reason)
		}
	}
	if o.restarts() > before.restarts() && o.State != Ended {
		v.write(pod, corev1.EventTypeWarning, ReasonGuardRestarted, "gpuslice-guard was started again after it ended with "+o.Guard.Ended+
			"; while it was away nothing was ended: see its log of the last run")
	}
	if before.State == Degraded && o.State == Enforced {
		v.write(pod, corev1.EventTypeNormal, ReasonRestored, "what was planned holds again: "+string(o.Tier))
	}
}

// say writes an Event on the pod and one on its owner.
func (v eventWriter) write(pod *corev1.Pod, kind, reason, sentence string) {
	v.Write(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, kind, reason, sentence)
	if owner := events.ControllerOf(pod); owner != nil {
		v.Write(owner, kind, reason, "pod "+pod.Name+": "+sentence)
	}
}
