package strategies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
)

// claim shares a device by claims of memory: the scheduler places slices of any size by the free memory of each device.
// Nothing on the node enforces a slice, so that the guard or the framework has to.
func claim() Strategy {
	return Strategy{
		Name:     "claim",
		Doc:      "a claim of exactly the slice's memory, by dynamic resource allocation; memory is counted, and not divided by the device itself",
		Unit:     UnitShare,
		Claims:   true,
		Listed:   true,
		View:     frameworks.ViewWhole,
		Tier:     api.TierNone,
		Inject:   func(Grant) Injection { return Injection{} },
		Requires: claimRequires,
	}
}

// Grouped denies a slice by a claim to a pod of a PodGroup: the group's author may list the claim there, and all its pods then share
// the one claim that Kubernetes makes (feature gate DRAWorkloadResourceClaims), each with a whole slice.
func Grouped(pod *corev1.PodSpec) *api.Violation {
	if pod.SchedulingGroup == nil {
		return nil
	}
	return &api.Violation{Rule: api.RuleStrategy, Reason: "a claim in a PodGroup", Field: "spec.schedulingGroup", Detail: fmt.Sprintf(
		"spec.schedulingGroup is set, and pods of a PodGroup can share one claim, each with all of its memory; remove it, or write %s with another strategy", api.LabelStrategy)}
}

// claimRequires denies a share of compute: the drivers have nothing to claim it by. And a memory-limit above the slice:
// unclaimed memory is given to others firmly.
func claimRequires(p *Placement) *api.Violation {
	switch {
	case p.Burst > 0:
		return &api.Violation{Rule: api.RuleStrategy, Reason: "memory-limit above the slice", Detail: fmt.Sprintf(
			"container %q may reach %s, and others on pool %s claim what it does not; remove memory-limit, or write %s: %q",
			p.Container.Name, p.Burst, p.Pool, api.LabelMemory, p.Burst)}
	case p.Compute == 0:
		return Grouped(p.Pod)
	}
	return &api.Violation{Rule: api.RuleStrategy, Reason: "compute is not enforced", Detail: fmt.Sprintf(
		"container %q requests compute %d, and nothing on pool %s enforces it; remove label %s",
		p.Container.Name, p.Compute, p.Pool, api.LabelCompute)}
}
