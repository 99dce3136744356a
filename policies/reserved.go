package policies

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// authorsUnderOurName returns a container that has one of our names and cannot be ours, and whether it requests a GPU.
// Check, guard and recorders among the init containers may have come with a copy; where they alone request a GPU they have not.
func authorsUnderOurName(spec *corev1.PodSpec, pools []pools.Pool) (name string, gpu bool) {
	requests := func(c *corev1.Container) bool { return request.RequestsGPU(c, pools) }
	others := false
	for c := range podspec.Containers(spec) {
		others = others || requests(c)
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		mayBeOurs := c.Name == limits.CheckContainer || c.Name == limits.GuardContainer || strings.HasPrefix(c.Name, limits.RecordContainer)
		if podspec.IsOurs(c.Name) && (!mayBeOurs || !others && requests(c)) {
			return c.Name, requests(c)
		}
	}
	for i := range spec.Containers {
		if c := &spec.Containers[i]; podspec.IsOurs(c.Name) {
			return c.Name, requests(c)
		}
	}
	return "", false
}
