package promise

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// annotationsEdit is the record on the pod: its Promise, what was planned and observed, and for people a summary and the label of
// the tier.
type annotationsEdit struct{}

// ownAnnotations are the annotations that gpuslice alone writes.
var ownAnnotations = []string{api.AnnotationPromise, api.AnnotationPlanned, api.AnnotationObserved, api.AnnotationSummary}

func (annotationsEdit) Apply(pod *corev1.Pod, old, next *Promise) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	if old != next { // else the pod carries this text, and encoding costs as much as all other edits together
		pod.Annotations[api.AnnotationPromise] = next.Encode()
	}
	delete(pod.Annotations, api.AnnotationObserved) // nobody can have observed this pod yet, only the one that it was copied from
	next.WritePlanned(pod, next.Planned)
}

func (annotationsEdit) Revert(pod *corev1.Pod, _, _ *Promise) {
	for _, name := range ownAnnotations {
		delete(pod.Annotations, name)
	}
	delete(pod.Labels, api.LabelTier)
}

func (annotationsEdit) Restore(old, updated *corev1.Pod, _ *Promise) {
	for _, name := range ownAnnotations {
		restoreEntry(old.Annotations, &updated.Annotations, name)
	}
	restoreEntry(old.Labels, &updated.Labels, api.LabelTier)
}

// PlannedOn is what is planned for the pod now: with other images than it was created with it is another enforcement.
func (p *Promise) PlannedOn(pod *corev1.Pod) Planned {
	var now Planned
	if json.Unmarshal([]byte(pod.Annotations[api.AnnotationPlanned]), &now) != nil || len(now.Containers) != len(p.Planned.Containers) {
		return p.Planned
	}
	return now
}

// WritePlanned writes what is planned for the pod now. The summary of a live pod, which may tell what was observed, stays where
// the plan does.
func (p *Promise) WritePlanned(pod *corev1.Pod, now Planned) {
	text, err := json.Marshal(now)
	if err != nil {
		panic("encode plan: " + err.Error()) // plain data only
	}
	if pod.Annotations[api.AnnotationPlanned] == string(text) && pod.Annotations[api.AnnotationObserved] != "" {
		return
	}
	pod.Annotations[api.AnnotationPlanned] = string(text)
	if p.Slice == "" {
		delete(pod.Annotations, api.AnnotationSummary)
		delete(pod.Labels, api.LabelTier)
		return
	}
	pod.Annotations[api.AnnotationSummary] = p.Summary(now.Tier)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[api.LabelTier] = string(now.Tier)
}

// Summary is the slice, and the tier that enforces it, for people: "8Gi of NVIDIA A100, enforced by guard". "": an earlier build
// gave the slice.
func (p *Promise) Summary(tier api.Tier) string {
	switch {
	case p.Slice == "":
		return ""
	case tier == api.TierNone:
		return p.Slice + ", not enforced"
	}
	return p.Slice + ", enforced by " + string(tier)
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
