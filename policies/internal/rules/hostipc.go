package rules

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// hostIPC denies the node's IPC namespace: the shared memory of MPS clients is there. Clients of GKE's daemon need it, so
// where there are such pools the pod may have it on them alone: see HostIPCElsewhere.
var hostIPC = Rule{Reason: "hostIPC in a slice", Find: func(s Subject) []Part {
	if !s.Pod.Spec.HostIPC || slices.ContainsFunc(s.Pools, func(p pools.Pool) bool { return p.Provider().HostIPC }) {
		return nil
	}
	return []Part{{Field: "spec.hostIPC", Text: "spec.hostIPC is true, and with it the pod reaches the shared memory of its neighbors on the node"}}
}, Instead: "remove it (an emptyDir with medium: Memory on /dev/shm is shared memory of the pod's own)"}

// HostIPCElsewhere denies a pool whose slices need no IPC namespace of the node's to a pod that has it.
func HostIPCElsewhere(pod *corev1.Pod, pool *pools.Pool) *api.Violation {
	if !pod.Spec.HostIPC || pool.Provider().HostIPC {
		return nil
	}
	return &api.Violation{Rule: api.RuleTamper, Field: "spec.hostIPC", Reason: hostIPC.Reason,
		Detail: "spec.hostIPC is true, which only clients of GKE's MPS need, and " + pool.Describe() + " is none; " + hostIPC.Instead}
}

// UnpromisedHostIPC denies the node's IPC namespace to a pod whose promised slice does not need it.
func UnpromisedHostIPC(pod *corev1.Pod, promised *promise.Promise) []api.Violation {
	if !pod.Spec.HostIPC || promised.Pod.HostIPC || promised.Pod.NeedsHostIPC {
		return nil
	}
	return []api.Violation{{Rule: api.RuleTamper, Field: "spec.hostIPC", Reason: hostIPC.Reason,
		Detail: "spec.hostIPC is true, which only clients of GKE's MPS need, and " + promised.Place() + " is none; " + hostIPC.Instead}}
}
