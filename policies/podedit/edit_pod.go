package podedit

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/promise"
)

// podEdit covers the pod itself: its classes, its scheduler, and the node's IPC namespace, by which clients reach an
// MPS daemon on the host.
type podEdit struct{}

func (podEdit) Apply(pod *corev1.Pod, _, next *promise.Promise) {
	spec, want := &pod.Spec, next.Pod
	if want.PriorityClassName != "" && spec.PriorityClassName != want.PriorityClassName {
		setPriorityClass(spec, want.PriorityClassName)
	}
	if want.SchedulerName != "" {
		spec.SchedulerName = want.SchedulerName
	}
	if want.RuntimeClassName != "" {
		spec.RuntimeClassName = new(want.RuntimeClassName)
	}
	spec.HostIPC = spec.HostIPC || want.HostIPC
}

func (podEdit) Revert(pod *corev1.Pod, old, next *promise.Promise) {
	spec, was, keep := &pod.Spec, old.Pod, next.Pod
	if name := was.PriorityClassName; name != "" && name == spec.PriorityClassName && name != keep.PriorityClassName {
		setPriorityClass(spec, "")
	}
	if name := was.SchedulerName; name != "" && name == spec.SchedulerName && name != keep.SchedulerName {
		spec.SchedulerName = corev1.DefaultSchedulerName // the server's default
	}
	if name := spec.RuntimeClassName; name != nil && *name == was.RuntimeClassName && *name != keep.RuntimeClassName {
		spec.RuntimeClassName = nil
	}
	if was.HostIPC && !keep.HostIPC {
		spec.HostIPC = false
	}
}

func (podEdit) Restore(old, updated *corev1.Pod, given *promise.Promise) {
	was, spec, wrote := &old.Spec, &updated.Spec, given.Pod
	if name := spec.PriorityClassName; wrote.PriorityClassName != "" && (name == "" || name == was.PriorityClassName) {
		spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = was.PriorityClassName, was.Priority, was.PreemptionPolicy
	}
	if name := spec.SchedulerName; wrote.SchedulerName != "" && (name == "" || name == corev1.DefaultSchedulerName) {
		spec.SchedulerName = was.SchedulerName
	}
	if wrote.RuntimeClassName != "" && spec.RuntimeClassName == nil {
		spec.RuntimeClassName = was.RuntimeClassName
	}
	if wrote.HostIPC {
		spec.HostIPC = was.HostIPC
	}
}

// setPriorityClass clears the fields that the server computes from the class: it does that in its second pass, and
// denies values that were computed from another.
func setPriorityClass(spec *corev1.PodSpec, name string) {
	spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = name, nil, nil
}
