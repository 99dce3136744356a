package promise

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// ClaimTemplates are the names of the ResourceClaimTemplates that the pod's claims are made of, each once.
func (p *Promise) ClaimTemplates() (names []string) {
	for i := range p.Containers {
		if name := p.Containers[i].Template; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// HasClaim reports whether the pod's claim is the one of a container's slice.
func (p *Promise) HasClaim(claim *corev1.PodResourceClaim) bool {
	return p != nil && slices.ContainsFunc(p.Containers, func(c Container) bool { return c.Claim != "" && c.claims(claim) })
}

// claims reports whether the pod's claim is the container's, by the promised template.
func (c *Container) claims(have *corev1.PodResourceClaim) bool {
	return have.Name == c.Claim && have.ResourceClaimTemplateName != nil && *have.ResourceClaimTemplateName == c.Template
}

// ClaimedBy reports whether the pod has the container's claim; a container without one has all that it needs.
func (c *Container) ClaimedBy(spec *corev1.PodSpec) bool {
	return c.Claim == "" || slices.ContainsFunc(spec.ResourceClaims, func(have corev1.PodResourceClaim) bool { return c.claims(&have) })
}

// soundClaim reports whether a build of ours may have written the claim: only names of gpuslice's are removed from a
// pod.
func (c *Container) soundClaim() bool {
	_, err := claims.Parse(c.Template)
	return err == nil && podspec.IsOurClaim(c.Claim) && c.Resource == "" && c.Granule == 0
}

// ClaimsAlone reports whether the container shares its claim with none before it in the list.
func (c *Container) ClaimsAlone(before []Container) bool {
	return !slices.ContainsFunc(before, func(other Container) bool { return other.Claim == c.Claim })
}

// Instance is the MIG profile of which the container gets an instance instead of a share, where one is free; "": of none.
func (c *Container) Instance() string {
	t, _ := claims.Parse(c.Template) // a container without a claim has none
	return t.Preferred
}

// MayGetInstances reports whether each container may get an instance.
func (p *Promise) MayGetInstances() bool {
	return !slices.ContainsFunc(p.Containers, func(c Container) bool { return c.Instance() == "" })
}

// GotInstance reports whether the container's claim got an instance, although a share was allowed too. Names of
// requests mean nothing in a claim that differs from its template.
func (c *Container) GotInstance(claim *resourcev1.ResourceClaim) bool {
	if c.Instance() == "" || claim.Status.Allocation == nil || claims.Lies(c.Template, &claim.Spec) {
		return false
	}
	results := claim.Status.Allocation.Devices.Results
	return len(results) == 1 && results[0].Request == claims.GivesInstance
}
