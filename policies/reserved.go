package policies

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// reservedContainer denies a container of the author's own under our names: what is ours is written anew, so it would
// vanish from the pod, or get a GPU that nobody looks at. It is nil where the pod has none, or where nothing requests a
// slice.
func reservedContainer(in *Input) *api.Violation {
	name, gpu := authorsUnderOurName(&in.Pod.Spec, in.Pools)
	if name == "" || request.SliceLabel(in.Pod) == "" && !(gpu && in.Policy.Mode == modes.Transparent) {
		return nil
	}
	return request.Invalid("reserved name", fmt.Sprintf("container %q: names that begin with %s belong to gpuslice; give it another name", name, podspec.Prefix))
}

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
