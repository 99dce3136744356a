package policies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// tolerationsEdit is the tolerations that policy adds.
type tolerationsEdit struct{}

func (tolerationsEdit) Apply(pod *corev1.Pod, _, next *Promise) {
	addTolerations(&pod.Spec, next.Tolerations)
}

func (tolerationsEdit) Revert(pod *corev1.Pod, old, next *Promise) {
	pod.Spec.Tolerations = slices.DeleteFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return hasToleration(old.Tolerations, t) && !hasToleration(next.Tolerations, t)
	})
}

// Restore puts back what old still has: tolerations may only be added to a live pod.
func (tolerationsEdit) Restore(old, updated *corev1.Pod, given *Promise) {
	addTolerations(&updated.Spec, slices.DeleteFunc(slices.Clone(old.Spec.Tolerations),
		func(t corev1.Toleration) bool { return !hasToleration(given.Tolerations, t) }))
}

func addTolerations(spec *corev1.PodSpec, tolerations []corev1.Toleration) {
	for _, t := range tolerations {
		if !hasToleration(spec.Tolerations, t) {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
}

func hasToleration(list []corev1.Toleration, t corev1.Toleration) bool {
	return slices.ContainsFunc(list, func(have corev1.Toleration) bool {
		return have.MatchToleration(&t) && equalSeconds(have.TolerationSeconds, t.TolerationSeconds)
	})
}

func equalSeconds(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
