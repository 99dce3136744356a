package cluster

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/config"
)

// SpecsOf returns the specs that find has of the pod's claims, by the pod's names for them. Where the cluster serves no claims, each is
// one of nothing; that may change while find reads.
func SpecsOf(pod *corev1.Pod, unserved func() bool,
	find func(claim, template string) *resourcev1.ResourceClaimSpec) map[string]*resourcev1.ResourceClaimSpec {
	out := map[string]*resourcev1.ResourceClaimSpec{}
	for _, c := range pod.Spec.ResourceClaims {
		spec := find(claimNames(pod, c))
		if spec == nil && unserved() {
			spec = &resourcev1.ResourceClaimSpec{}
		}
		if spec != nil {
			out[c.Name] = spec
		}
	}
	return out
}

// Allocated is a claim's spec, with the allocated number in place of a request for all devices that match.
func Allocated(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaimSpec {
	all := func(r resourcev1.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.AllocationMode == resourcev1.DeviceAllocationModeAll
	}
	if claim.Status.Allocation == nil || !slices.ContainsFunc(claim.Spec.Devices.Requests, all) {
		return &claim.Spec
	}
	spec := claim.Spec
	spec.Devices.Requests = slices.Clone(spec.Devices.Requests)
	for i, r := range spec.Devices.Requests {
		given := int64(0)
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.Request == r.Name {
				given++
			}
		}
		if all(r) && given > 0 {
			exactly := *r.Exactly
			exactly.AllocationMode, exactly.Count = resourcev1.DeviceAllocationModeExactCount, given
			spec.Devices.Requests[i].Exactly = &exactly
		}
	}
	return &spec
}

// Claims are device classes, and the specs of claims and templates, by NAMESPACE/NAME. They are for tools that read
// their objects once.
type Claims struct {
	Classes           map[string]*resourcev1.DeviceClass
	Claims, Templates map[string]*resourcev1.ResourceClaimSpec
	Unserved          bool // the cluster does not serve resource.k8s.io/v1
}

// Add adds a claim as it was read.
func (c Claims) Add(claim *resourcev1.ResourceClaim) {
	c.Claims[claim.Namespace+"/"+claim.Name] = Allocated(claim)
}

// Slices is how many templates of gpuslice's a namespace has.
func (c Claims) Slices(namespace string) (n int) {
	for name := range c.Templates {
		if rest, ok := strings.CutPrefix(name, namespace+"/"); ok && claims.NamesSlice(rest) {
			n++
		}
	}
	return n
}

// Of is the Input of a pod of the namespace.
func (c Claims) Of(in policies.Input, pod *corev1.Pod) policies.Input {
	in.Pod, in.DeviceClasses, in.Claims = pod, c.Classes, c.specs(in.Namespace.Name, pod)
	return in
}

// GPUClaims are those of a pod of the namespace, of whose policy and pools nothing is known.
func (c Claims) GPUClaims(namespace string, pod *corev1.Pod) accounting.PodClaims {
	classes := accounting.DeviceClasses{Policy: &config.Policy{}, Classes: c.Classes}
	return accounting.PodClaims{DeviceClasses: classes, Pod: pod, Claims: c.specs(namespace, pod)}
}

// specs are the specs of the pod's claims, by the pod's name for each.
func (c Claims) specs(namespace string, pod *corev1.Pod) map[string]*resourcev1.ResourceClaimSpec {
	return SpecsOf(pod, func() bool { return c.Unserved }, func(claim, template string) *resourcev1.ResourceClaimSpec {
		return cmp.Or(c.Claims[namespace+"/"+claim], c.Templates[namespace+"/"+template])
	})
}

// claimNames are the names of the claim, if there is one yet, and of the template that it is made from.
func claimNames(pod *corev1.Pod, c corev1.PodResourceClaim) (claim, template string) {
	if c.ResourceClaimName != nil {
		return *c.ResourceClaimName, ""
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.Name == c.Name && s.ResourceClaimName != nil {
			claim = *s.ResourceClaimName
		}
	}
	if c.ResourceClaimTemplateName != nil {
		template = *c.ResourceClaimTemplateName
	}
	return claim, template
}
