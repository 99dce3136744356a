package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// checkResize denies other processor time or memory for the guard's containers of a live pod, and a limit of memory that
// they share: with too little the guard sees nothing in time. Containers of the author's own are theirs to resize; GPUs cannot be.
func checkResize(old, updated *corev1.Pod) []api.Violation {
	promised, err := promise.Decode(old.Annotations[api.AnnotationPromise])
	if err != nil || updated.DeletionTimestamp != nil {
		return nil
	}
	if podedit.IsGuard(promised, limits.GuardContainer) && podspec.LimitsMemory(&updated.Spec) && !podspec.LimitsMemory(&old.Spec) {
		return []api.Violation{{Rule: api.RuleImmutable, Reason: "the guard's resources cannot change", Field: "spec.resources.limits[memory]",
			Detail: "spec.resources.limits.memory is for all containers, so the others could use up the guard's; leave it out, and limit each container"}}
	}
	was := map[string]corev1.ResourceRequirements{}
	for c := range podspec.EveryContainer(&old.Spec) {
		was[c.Name] = c.Resources
	}
	for c := range podspec.EveryContainer(&updated.Spec) {
		if podedit.IsGuard(promised, c.Name) && !equality.Semantic.DeepEqual(was[c.Name], c.Resources) {
			return []api.Violation{{Rule: api.RuleImmutable, Reason: "the guard's resources cannot change",
				Container: c.Name, Field: "resources", Detail: fmt.Sprintf(
					"container %q belongs to gpuslice; leave it out (a VerticalPodAutoscaler does with resourcePolicy.containerPolicies: [{containerName: %q, mode: \"Off\"}])", c.Name, c.Name)}}
		}
	}
	return nil
}
