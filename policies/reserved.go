package policies

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
)

// checkNames denies a container of the author's own under our names if something requests a slice: those containers are
// rewritten, so it would vanish from the pod, or get a GPU that nothing watches. Check, guard and recorders among the init
// containers may have come with a copy; where they alone request a GPU they have not.
func (c *creation) checkNames() Decision {
	spec := &c.in.Pod.Spec
	requests := func(in *corev1.Container) bool { return request.RequestsGPU(in, c.in.Pools) }
	others := false
	for in := range podspec.Containers(spec) {
		others = others || requests(in)
	}
	for i, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for j := range list {
			in := &list[j]
			copied := i == 0 && (in.Name == limits.CheckContainer || in.Name == limits.GuardContainer ||
				strings.HasPrefix(in.Name, limits.RecordContainer))
			switch {
			case !podspec.IsOurs(in.Name), copied && (others || !requests(in)):
			case request.SliceLabel(c.in.Pod) != "", requests(in) && c.in.Policy.Mode == modes.Transparent:
				return denial(*request.Invalid("reserved name", fmt.Sprintf("container %q: names that begin with %s belong to gpuslice; give it another name", in.Name, podspec.Prefix)))
			}
		}
	}
	return Decision{}
}
