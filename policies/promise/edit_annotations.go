package promise

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// annotationsEdit is the record on the pod: its Promise, and what was planned and observed.
type annotationsEdit struct{}

// ownAnnotations are the annotations that gpuslice alone writes.
func ownAnnotations() []string {
	return []string{api.AnnotationPromise, api.AnnotationPlanned, api.AnnotationObserved}
}

func (annotationsEdit) Apply(pod *corev1.Pod, old, next *Promise) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	if old != next { // else the pod carries this text, and encoding costs as much as all other edits together
		pod.Annotations[api.AnnotationPromise] = next.Encode()
	}
	pod.Annotations[api.AnnotationPlanned] = mustJSON(next.Planned)
	delete(pod.Annotations, api.AnnotationObserved) // nobody can have observed this pod yet, only the one that it was copied from
}

func (annotationsEdit) Revert(pod *corev1.Pod, _, _ *Promise) {
	for _, name := range ownAnnotations() {
		delete(pod.Annotations, name)
	}
}

func (annotationsEdit) Restore(old, updated *corev1.Pod, _ *Promise) {
	for _, name := range ownAnnotations() {
		restoreAnnotation(old, updated, name)
	}
}

func restoreAnnotation(old, updated *corev1.Pod, name string) {
	value, ok := old.Annotations[name]
	if !ok {
		delete(updated.Annotations, name)
		return
	}
	if updated.Annotations == nil {
		updated.Annotations = map[string]string{}
	}
	updated.Annotations[name] = value
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode: " + err.Error()) // plain data only
	}
	return string(b)
}
