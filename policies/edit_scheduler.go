package policies

import corev1 "k8s.io/api/core/v1"

// schedulerEdit is the scheduler that places the pod.
type schedulerEdit struct{}

func (schedulerEdit) Apply(pod *corev1.Pod, _, next *Promise) {
	if next.Pod.SchedulerName != "" {
		pod.Spec.SchedulerName = next.Pod.SchedulerName
	}
}

func (schedulerEdit) Revert(pod *corev1.Pod, old, next *Promise) {
	was := old.Pod.SchedulerName
	if was != "" && was == pod.Spec.SchedulerName && was != next.Pod.SchedulerName {
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName // what the server writes where the author names none
	}
}

func (schedulerEdit) Restore(old, updated *corev1.Pod, given *Promise) {
	if name := updated.Spec.SchedulerName; given.Pod.SchedulerName != "" && (name == "" || name == corev1.DefaultSchedulerName) {
		updated.Spec.SchedulerName = old.Spec.SchedulerName
	}
}
