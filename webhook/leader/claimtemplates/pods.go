package claimtemplates

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

// NamedBy returns gpuslice's templates that a pod names: of one with a slice, until it has ended. They are no more than a pod may have
// containers, since an author who is not governed can write any number of claims.
func NamedBy(pod *corev1.Pod) podcache.Templates {
	_, sliced := pod.Labels[api.LabelTier]
	if !sliced || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return podcache.Templates{}
	}
	var all []string
	for i := range pod.Spec.ResourceClaims {
		name := pod.Spec.ResourceClaims[i].ResourceClaimTemplateName
		if name != nil && len(all) < policies.MaxContainers && !slices.Contains(all, *name) && claims.NamesSlice(*name) {
			all = append(all, *name)
		}
	}
	return podcache.TemplatesOf(all)
}
