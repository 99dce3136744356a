package promise

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/request"
)

// changedLabels denies what would make the pod say something else than what it was given.
func changedLabels(old, updated *corev1.Pod) (out []api.Violation) {
	for _, label := range request.Labels() {
		was, had := old.Labels[label]
		is, has := updated.Labels[label]
		if was != is || had != has {
			out = append(out, Immutable("label "+label, presence(was, had), presence(is, has)))
		}
	}
	was, had := old.Annotations[api.AnnotationContainers]
	is, has := updated.Annotations[api.AnnotationContainers]
	if was != is || had != has {
		out = append(out, Immutable("annotation "+api.AnnotationContainers, presence(was, had), presence(is, has)))
	}
	return out
}

func Immutable(what, was, is string) api.Violation {
	return api.Violation{Rule: api.RuleImmutable, Reason: "the slice of a live pod cannot change", Detail: fmt.Sprintf(
		"%s was %s and would be %s; delete the pod and create it again with the new value", what, was, is)}
}

func presence(value string, there bool) string {
	if !there {
		return "absent"
	}
	return message.Quote(value)
}
