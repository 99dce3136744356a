package policies

import corev1 "k8s.io/api/core/v1"

// priorityClassEdit is the pod's priority class.
type priorityClassEdit struct{}

func (priorityClassEdit) Apply(pod *corev1.Pod, _, next *Promise) {
	if name := next.Pod.PriorityClassName; name != "" && pod.Spec.PriorityClassName != name {
		setPriorityClass(&pod.Spec, name)
	}
}

func (priorityClassEdit) Revert(pod *corev1.Pod, old, next *Promise) {
	was := old.Pod.PriorityClassName
	if was != "" && was == pod.Spec.PriorityClassName && was != next.Pod.PriorityClassName {
		setPriorityClass(&pod.Spec, "")
	}
}

func (priorityClassEdit) Restore(old, updated *corev1.Pod, given *Promise) {
	was, spec := &old.Spec, &updated.Spec
	if given.Pod.PriorityClassName != "" && (spec.PriorityClassName == "" || spec.PriorityClassName == was.PriorityClassName) {
		spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = was.PriorityClassName, was.Priority, was.PreemptionPolicy
	}
}

// setPriorityClass clears what the server computes from the class: it does that in its second pass, and denies values
// that were computed from another.
func setPriorityClass(spec *corev1.PodSpec, name string) {
	spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = name, nil, nil
}
