package observe

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// Reasons of the Events.
const (
	ReasonWeaker    = "EnforcementWeaker"
	ReasonHolds     = "EnforcementHolds"
	ReasonRestarted = "GuardRestarted"
)

// voice writes Events. client-go's recorder counts repeated ones up, folds similar ones together, and lets no object
// have more than a burst of 25 and one in five minutes after that; what comes faster than it can be written is dropped.
type voice struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
}

func newVoice(ctx context.Context, client kubernetes.Interface) *voice {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(metav1.NamespaceAll)})
	return &voice{broadcaster: b, recorder: b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "gpuslice"})}
}

func (v *voice) close() { v.broadcaster.Shutdown() }

// tell says what is new since before: each reason once, each restart of the guard, and that all holds again.
func (v *voice) tell(pod *corev1.Pod, before, o Observation) {
	for _, reason := range o.Reasons {
		if !slices.Contains(before.Reasons, reason) {
			v.say(pod, corev1.EventTypeWarning, ReasonWeaker, reason)
		}
	}
	if o.restarts() > before.restarts() && o.State != Ended {
		v.say(pod, corev1.EventTypeWarning, ReasonRestarted, "gpuslice-guard was started again after it ended with "+o.Guard.Ended+
			"; while it was away nothing was ended: see its log of the last run")
	}
	if before.State == Weaker && o.State == Holds {
		v.say(pod, corev1.EventTypeNormal, ReasonHolds, "what was planned holds again: "+string(o.Tier))
	}
}

// say writes an Event on the pod and one on its owner.
func (v *voice) say(pod *corev1.Pod, kind, reason, sentence string) {
	v.recorder.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, kind, reason, sentence)
	if owner := metav1.GetControllerOf(pod); owner != nil {
		v.recorder.Event(&corev1.ObjectReference{
			APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name, UID: owner.UID,
		}, kind, reason, "pod "+pod.Name+": "+sentence)
	}
}
