package podedit

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/request"
)

// changedLabels denies an update after which the pod would request something else than it was given.
func changedLabels(old, updated *corev1.Pod) (out []api.Violation) {
	for _, label := range request.Labels() {
		was, had := old.Labels[label]
		is, has := updated.Labels[label]
		if was != is || had != has {
			out = append(out, request.Immutable(api.LabelField(label), "label "+label, presence(was, had), presence(is, has)))
		}
	}
	was, had := old.Annotations[api.AnnotationContainers]
	is, has := updated.Annotations[api.AnnotationContainers]
	if was != is || had != has {
		out = append(out, request.Immutable(api.AnnotationField(api.AnnotationContainers), "annotation "+api.AnnotationContainers, presence(was, had), presence(is, has)))
	}
	return out
}

func presence(value string, there bool) string {
	if !there {
		return "absent"
	}
	return message.Quote(value)
}
