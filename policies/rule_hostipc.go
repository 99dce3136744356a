package policies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// hostIPC denies the node's IPC namespace: the shared memory of MPS clients is there. Clients of GKE's daemon need it, so
// where there are such pools the pod may have it on them alone: see hostIPCElsewhere.
func hostIPC() TamperRule {
	return TamperRule{Reason: "hostIPC in a slice", Find: func(s Subject) []string {
		if !s.Pod.Spec.HostIPC || slices.ContainsFunc(s.Pools, func(p Pool) bool { return p.provider().HostIPC }) {
			return nil
		}
		return []string{"spec.hostIPC is true, and with it the pod reaches the shared memory of its neighbours on the node"}
	}, Instead: "remove it (an emptyDir with medium: Memory on /dev/shm is shared memory of the pod's own)"}
}

// hostIPCElsewhere denies a pool whose slices need no IPC namespace of the node's to a pod that has it.
func hostIPCElsewhere(pod *corev1.Pod, pool *Pool) *Violation {
	if !pod.Spec.HostIPC || pool.provider().HostIPC {
		return nil
	}
	r := hostIPC()
	return &Violation{RuleTamper, r.Reason, "spec.hostIPC is true, which only clients of GKE's MPS need, and " + pool.describe() + " is none; " + r.Instead}
}

// hostIPCUnpromised denies the node's IPC namespace to a pod whose promised slice does not need it.
func hostIPCUnpromised(pod *corev1.Pod, promise *Promise) []Violation {
	if !pod.Spec.HostIPC || promise.Pod.HostIPC || promise.Pod.NeedsHostIPC {
		return nil
	}
	r := hostIPC()
	return []Violation{{RuleTamper, r.Reason, "spec.hostIPC is true, which only clients of GKE's MPS need, and " + promise.place() + " is none; " + r.Instead}}
}
