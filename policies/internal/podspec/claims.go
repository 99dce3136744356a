package podspec

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// OnlyClaim is the pod's name for the claim of the one container that has a slice.
const OnlyClaim = "gpuslice"

// ClaimName is the pod's name for the claim of one of several containers with slices. Of a long name it has the beginning and a hash,
// after two dashes: no container's name begins with one, so that no other container's claim can have the name.
func ClaimName(container string) string {
	name := Prefix + container
	if len(name) <= validation.DNS1123LabelMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(container))
	hash := fmt.Sprintf("-%x", sum[:20])
	return (Prefix + "-" + container)[:validation.DNS1123LabelMaxLength-len(hash)] + hash
}

// IsOurClaim reports whether a claim is gpuslice's, by the name that the pod has for it.
func IsOurClaim(name string) bool { return name == OnlyClaim || strings.HasPrefix(name, Prefix) }

// HasClaimMade reports whether Kubernetes has made the claim of that name for the pod.
func HasClaimMade(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool {
		return s.Name == name && s.ResourceClaimName != nil
	})
}

// NamesClaim reports whether the container has the devices of a claim of its pod's.
func NamesClaim(c *corev1.Container, claim string) bool {
	return slices.ContainsFunc(c.Resources.Claims, func(have corev1.ResourceClaim) bool { return have.Name == claim })
}

// SetClaim gives a container a claim of its pod's, made of a template.
func SetClaim(spec *corev1.PodSpec, container, name, template string) {
	claim := corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: new(template)}
	if at := slices.IndexFunc(spec.ResourceClaims, func(have corev1.PodResourceClaim) bool { return have.Name == name }); at >= 0 {
		spec.ResourceClaims[at] = claim
	} else {
		spec.ResourceClaims = append(spec.ResourceClaims, claim)
	}
	have, _ := ContainerNamed(spec, container)
	if have != nil && !NamesClaim(have, name) {
		have.Resources.Claims = append(have.Resources.Claims, corev1.ResourceClaim{Name: name})
	}
}

// DropClaims removes the claims under our names that no container is given, and from each container all but its own:
// one that shares the claim of another's slice, or takes one request of it, was not promised that.
func DropClaims(spec *corev1.PodSpec, given func(container string) string) {
	kept := map[string]bool{}
	for c := range Containers(spec) {
		own := given(c.Name)
		kept[own] = true
		c.Resources.Claims = slices.DeleteFunc(c.Resources.Claims, func(have corev1.ResourceClaim) bool {
			return IsOurClaim(have.Name) && (have.Name != own || have.Request != "")
		})
	}
	spec.ResourceClaims = slices.DeleteFunc(spec.ResourceClaims, func(have corev1.PodResourceClaim) bool {
		return IsOurClaim(have.Name) && !kept[have.Name]
	})
}
