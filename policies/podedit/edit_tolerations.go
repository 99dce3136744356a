package podedit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// tolerationsEdit is the tolerations that policy adds.
type tolerationsEdit struct{}

func (tolerationsEdit) Apply(pod *corev1.Pod, _, next *promise.Promise) {
	spec := &pod.Spec
	for _, t := range next.Tolerations {
		if !podspec.HasToleration(spec.Tolerations, t) {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
}

func (tolerationsEdit) Revert(pod *corev1.Pod, old, next *promise.Promise) {
	pod.Spec.Tolerations = slices.DeleteFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return podspec.HasToleration(old.Tolerations, t) && !podspec.HasToleration(next.Tolerations, t)
	})
}

// Restore puts back the tolerations of old: they may only be added to a live pod.
func (e tolerationsEdit) Restore(old, updated *corev1.Pod, given *promise.Promise) {
	still := slices.DeleteFunc(slices.Clone(old.Spec.Tolerations), func(t corev1.Toleration) bool {
		return !podspec.HasToleration(given.Tolerations, t)
	})
	e.Apply(updated, nil, &promise.Promise{Tolerations: still})
}
