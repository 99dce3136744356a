package policies

import corev1 "k8s.io/api/core/v1"

// hostIPCEdit is the node's IPC namespace, by which clients reach an MPS daemon on the host.
type hostIPCEdit struct{}

func (hostIPCEdit) Apply(pod *corev1.Pod, _, next *Promise) {
	pod.Spec.HostIPC = pod.Spec.HostIPC || next.Pod.HostIPC
}

func (hostIPCEdit) Revert(pod *corev1.Pod, old, next *Promise) {
	if old.Pod.HostIPC && !next.Pod.HostIPC {
		pod.Spec.HostIPC = false
	}
}

func (hostIPCEdit) Restore(old, updated *corev1.Pod, given *Promise) {
	if given.Pod.HostIPC {
		updated.Spec.HostIPC = old.Spec.HostIPC
	}
}
