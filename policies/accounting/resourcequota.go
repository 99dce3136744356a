package accounting

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// quotaUnits counts a pod's units for ResourceQuotas, by resource of NVIDIA's: under the names that its author wrote
// and under those that it carries, so that neither renamed pods nor others leave a quota. A container that requested a
// slice without naming a resource requested one of nvidia.com/gpu: else a label would be the way round a quota on it. p
// is the pod's Promise, trusted or not, since it can only add; nil: it has none.
func quotaUnits(pod *corev1.Pod, p *promise.Promise) map[string]int64 {
	perContainer := make(map[*corev1.Container]map[string]int64)
	names := make(map[string]bool)
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			units := nvidiaUnits(&list[i])
			if name, n := requested(p, list[i].Name); n > 0 && strings.HasPrefix(name, nvidia.ResourcePrefix) && len(name) <= quota.MaxUnitName {
				units[name] = max(units[name], min(n, quantity.MaxCharge))
			}
			perContainer[&list[i]] = units
			for name := range units {
				names[name] = true
			}
		}
	}
	var out map[string]int64
	for _, name := range slices.Sorted(maps.Keys(names)) {
		peak := Peak(spansOf(&pod.Spec, func(c *corev1.Container) quota.Charge { return quota.Charge{GPUs: perContainer[c][name]} }))
		out = quota.AddUnits(out, name, peak.GPUs)
	}
	return out
}

// nvidiaUnits is how many units a container carries of each resource of NVIDIA's.
func nvidiaUnits(c *corev1.Container) map[string]int64 {
	units := make(map[string]int64)
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for name, q := range list {
			if n := quantity.WholeUnits(q); n > 0 && strings.HasPrefix(string(name), nvidia.ResourcePrefix) {
				units[string(name)] = max(units[string(name)], n)
			}
		}
	}
	return units
}

// requested returns the request of the named container before it was planned. A nil Promise has none.
func requested(p *promise.Promise, container string) (resource string, units int64) {
	if p == nil {
		return "", 0
	}
	r := p.Request.Of(container)
	if r.Name == "" {
		return "", 0
	}
	return cmp.Or(r.Resource, api.ResourceGPU), r.GPUs
}

// renamedAway are the resources that a pod with this Promise requested and does not carry, in the order of their names.
func renamedAway(p *promise.Promise, pod *corev1.Pod) (out []string) {
	for c := range podspec.Containers(&pod.Spec) {
		name, n := requested(p, c.Name)
		if _, carried := c.Resources.Limits[corev1.ResourceName(name)]; n > 0 && !carried && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
