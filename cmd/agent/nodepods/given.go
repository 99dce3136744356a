package nodepods

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// nothingGiven marks a slim pod without a device.
const nothingGiven = "nothing-given"

// hasNothing reports whether a pod has no device, by any name: neither a resource
// of a device plugin nor a claim, nor the node's own files or privileges.
func hasNothing(pod *corev1.Pod) bool {
	spec := &pod.Spec
	if spec.HostPID || len(spec.ResourceClaims) > 0 {
		return false
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].HostPath != nil {
			return false
		}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if s := list[i].SecurityContext; s != nil && s.Privileged != nil && *s.Privileged || requestsDevices(list[i].Resources.Limits) {
				return false
			}
		}
	}
	return true
}

func requestsDevices(list corev1.ResourceList) bool {
	for name, quantity := range list {
		if strings.Contains(string(name), "/") && name != limits.GuardedResource && !quantity.IsZero() {
			return true
		}
	}
	return false
}
