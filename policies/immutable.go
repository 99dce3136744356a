package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// changedLabels denies what would make the pod say something else than what it was given.
func changedLabels(old, updated *corev1.Pod) (out []Violation) {
	for _, label := range requestLabels() {
		was, had := old.Labels[label]
		is, has := updated.Labels[label]
		if was != is || had != has {
			out = append(out, changed("label "+label, presence(was, had), presence(is, has)))
		}
	}
	was, had := old.Annotations[AnnotationContainers]
	is, has := updated.Annotations[AnnotationContainers]
	if was != is || had != has {
		out = append(out, changed("annotation "+AnnotationContainers, presence(was, had), presence(is, has)))
	}
	return out
}

func changed(what, was, is string) Violation {
	return Violation{RuleImmutable, "the slice of a live pod cannot change", fmt.Sprintf(
		"%s was %s and would be %s; delete the pod and create it again with the new value", what, was, is)}
}

func presence(value string, there bool) string {
	if !there {
		return "absent"
	}
	return quoteShort(value)
}
