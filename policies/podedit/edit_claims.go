package podedit

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// claimsEdit is the claims of slices: the pod's, by templates, and those that containers name. Check and guard name theirs
// themselves.
type claimsEdit struct{}

func (claimsEdit) Apply(pod *corev1.Pod, _, next *promise.Promise) {
	if len(pod.Spec.ResourceClaims) > 0 {
		dropClaims(&pod.Spec, next)
	}
	for i := range next.Containers {
		if next.Containers[i].Claim != "" {
			podspec.SetClaim(&pod.Spec, next.Containers[i].Name, next.Containers[i].Claim, next.Containers[i].Template)
		}
	}
}

// Revert removes every claim under our names that next does not write, old's too.
func (claimsEdit) Revert(pod *corev1.Pod, _, next *promise.Promise) {
	if len(pod.Spec.ResourceClaims) > 0 {
		dropClaims(&pod.Spec, next)
	}
}

// dropClaims removes the claims under our names that next does not write.
func dropClaims(spec *corev1.PodSpec, next *promise.Promise) {
	podspec.DropClaims(spec, func(container string) string {
		if c := next.Container(container); c != nil {
			return c.Claim
		}
		return ""
	})
}

// Restore puts the old claims back: they are immutable on a live pod, and a manifest that is applied again does not name them.
func (claimsEdit) Restore(old, updated *corev1.Pod, _ *promise.Promise) {
	if len(old.Spec.ResourceClaims) == 0 { // what an update adds is for the server to deny
		return
	}
	updated.Spec.ResourceClaims = podspec.RestoreList(updated.Spec.ResourceClaims, old.Spec.ResourceClaims,
		func(c corev1.PodResourceClaim) bool { return podspec.IsOurClaim(c.Name) },
		func(a, b corev1.PodResourceClaim) bool { return a.Name == b.Name })
	for was, c := range podspec.ContainerPairs(old, updated) {
		c.Resources.Claims = podspec.RestoreList(c.Resources.Claims, was.Resources.Claims,
			func(c corev1.ResourceClaim) bool { return podspec.IsOurClaim(c.Name) },
			func(a, b corev1.ResourceClaim) bool { return a == b })
	}
}
