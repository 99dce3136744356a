package policies

import corev1 "k8s.io/api/core/v1"

// runtimeClassEdit is the pod's runtime class.
type runtimeClassEdit struct{}

func (runtimeClassEdit) Apply(pod *corev1.Pod, _, next *Promise) {
	if next.Pod.RuntimeClassName != "" {
		pod.Spec.RuntimeClassName = new(next.Pod.RuntimeClassName)
	}
}

func (runtimeClassEdit) Revert(pod *corev1.Pod, old, next *Promise) {
	name, was := pod.Spec.RuntimeClassName, old.Pod.RuntimeClassName
	if name != nil && *name == was && was != next.Pod.RuntimeClassName {
		pod.Spec.RuntimeClassName = nil
	}
}

func (runtimeClassEdit) Restore(old, updated *corev1.Pod, given *Promise) {
	if given.Pod.RuntimeClassName != "" && updated.Spec.RuntimeClassName == nil {
		updated.Spec.RuntimeClassName = old.Spec.RuntimeClassName
	}
}
