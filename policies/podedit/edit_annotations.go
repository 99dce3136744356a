package podedit

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// annotationsEdit is the record on the pod: its Promise, the planned and observed tiers, and for people a summary and
// the label of the tier.
type annotationsEdit struct{}

// ownAnnotations are the annotations that gpuslice alone writes.
var ownAnnotations = []string{api.AnnotationPromise, api.AnnotationPlanned, api.AnnotationObserved, api.AnnotationSummary}

func (annotationsEdit) Apply(pod *corev1.Pod, old, next *promise.Promise) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	if old != next { // else the pod carries this text, and encoding costs as much as all other edits together
		pod.Annotations[api.AnnotationPromise] = next.Encode()
	}
	delete(pod.Annotations, api.AnnotationObserved) // nobody can have observed this pod yet, only the one that it was copied from
	next.WritePlanned(pod, next.Planned)
}

func (annotationsEdit) Revert(pod *corev1.Pod, _, _ *promise.Promise) {
	for _, name := range ownAnnotations {
		delete(pod.Annotations, name)
	}
	delete(pod.Labels, api.LabelTier)
}

func (annotationsEdit) Restore(old, updated *corev1.Pod, _ *promise.Promise) {
	for _, name := range ownAnnotations {
		restoreEntry(old.Annotations, &updated.Annotations, name)
	}
	restoreEntry(old.Labels, &updated.Labels, api.LabelTier)
}

// restoreEntry puts one name of a map back as old has it.
func restoreEntry(old map[string]string, updated *map[string]string, name string) {
	value, ok := old[name]
	if !ok {
		delete(*updated, name)
		return
	}
	if *updated == nil {
		*updated = map[string]string{}
	}
	(*updated)[name] = value
}
