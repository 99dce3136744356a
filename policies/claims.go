package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// checkClaims denies a pod that claims GPUs if policy does, and one that claims a slice itself: nothing would watch
// that slice. Claims that ours lists are gpuslice's. Where they are counted, those of a PodGroup are denied.
func checkClaims(in *Input, ours func(*corev1.PodResourceClaim) bool) []api.Violation {
	if len(in.Pod.Spec.ResourceClaims) > 0 {
		if v := claimsSlice(in, ours); v != nil {
			return []api.Violation{*v}
		}
	}
	if in.Policy.Claims != modes.ClaimsDeny {
		return groupClaims(in, ours)
	}
	found := in.GPUClaims().Taken(ours)
	if len(found) == 0 {
		return nil
	}
	return []api.Violation{{Rule: api.RulePolicy, Reason: "GPUs by a claim", Field: claimsField(in), Detail: fmt.Sprintf(
		"%s, and policy %s denies claims of GPUs; remove it, and write %s: 1 and the label %s: %s",
		message.ShortList(found), in.Policy.Name, api.ResourceGPU, api.LabelMemory, pools.AdvisedMemory(in.Pools, in.Policy.Strategies))}}
}

// groupClaims denies a pod of a PodGroup a claim of GPUs that something depends on: the group may have the claim, and keeps the devices
// after its last pod (feature gate DRAWorkloadResourceClaims), where nothing counts them. Kubernetes makes the claim of an extended
// resource for the pod alone.
func groupClaims(in *Input, ours func(*corev1.PodResourceClaim) bool) []api.Violation {
	if in.Pod.Spec.SchedulingGroup == nil || !in.Policy.DependsOnClaims() {
		return nil
	}
	found := in.GPUClaims().TakenByClaims(ours)
	if len(found) == 0 {
		return nil
	}
	return []api.Violation{{Rule: api.RulePolicy, Reason: "GPUs by a claim of a PodGroup", Field: "spec.schedulingGroup", Detail: fmt.Sprintf(
		"%s; a PodGroup can have the claim, and keep its devices when no pod is left for policy %s to count; remove spec.schedulingGroup, or the claim",
		message.ShortList(found), in.Policy.Name)}}
}

// claimsSlice denies a template of gpuslice's that the author names, and the claim of another pod's slice:
// both guards would allow all of it.
func claimsSlice(in *Input, ours func(*corev1.PodResourceClaim) bool) *api.Violation {
	for i := range in.Pod.Spec.ResourceClaims {
		at := field.NewPath("spec", "resourceClaims").Index(i)
		c := &in.Pod.Spec.ResourceClaims[i]
		if c.ResourceClaimName != nil && !ours(c) && claims.IsSlice(in.Claims[c.Name]) {
			return &api.Violation{Rule: api.RulePolicy, Reason: "another pod's claim",
				Field: at.Child("resourceClaimName").String(), Detail: fmt.Sprintf(
					"ResourceClaim %s is a slice, and no pods share one; remove it, and write %s: 1 and the label %s: %s",
					message.Quote(*c.ResourceClaimName), api.ResourceGPU, api.LabelMemory, pools.AdvisedMemory(in.Pools, in.Policy.Strategies))}
		}
		if c.ResourceClaimTemplateName == nil || ours(c) {
			continue
		}
		if t, err := claims.Parse(*c.ResourceClaimTemplateName); err == nil {
			return &api.Violation{Rule: api.RulePolicy, Reason: "a slice by a claim of the pod's own",
				Field: at.Child("resourceClaimTemplateName").String(), Detail: fmt.Sprintf(
					"claim %q names template %s, and such claims are written by gpuslice alone; remove it, and write %s: 1 and the label %s: %q",
					c.Name, *c.ResourceClaimTemplateName, api.ResourceGPU, api.LabelMemory, t.Memory)}
		}
	}
	return nil
}

// claimsField is the path of the pod's claims, or of its containers, one of which has an extended resource that Kubernetes makes a
// claim for.
func claimsField(in *Input) string {
	if len(in.Pod.Spec.ResourceClaims) == 0 {
		return "spec.containers"
	}
	return "spec.resourceClaims"
}

// writtenAnew are the claims of a pod that has, or will have, a slice: gpuslice's own names are removed from it first.
func writtenAnew(c *corev1.PodResourceClaim) bool { return podspec.IsOurClaim(c.Name) }
