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

// PlannedOn is what is planned for the pod now: with other images than it was created with it is another enforcement.
func (p *Promise) PlannedOn(pod *corev1.Pod) Planned {
	var now Planned
	if json.Unmarshal([]byte(pod.Annotations[api.AnnotationPlanned]), &now) != nil || len(now.Containers) != len(p.Planned.Containers) {
		return p.Planned
	}
	return now
}

// WritePlanned writes what is planned for the pod now.
func (p *Promise) WritePlanned(pod *corev1.Pod, now Planned) {
	pod.Annotations[api.AnnotationPlanned] = mustJSON(now)
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
