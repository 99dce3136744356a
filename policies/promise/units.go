package promise

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/charges"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/resourcename"
	"github.com/gpuslice/gpuslice/policies/internal/unitcount"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// quotaUnits is what a pod counts for in ResourceQuotas, by resource of NVIDIA's: under the names that its author wrote
// and under those that it carries, so that neither the pods that were renamed nor those that were not leave a quota. A
// container that requested a slice without naming a resource requested one of nvidia.com/gpu: else a label would be the
// way round a quota on it. p is the pod's Promise, trusted or not, since it can only add; nil: it has none.
func quotaUnits(pod *corev1.Pod, p *Promise) map[string]int64 {
	perContainer := make(map[*corev1.Container]map[string]int64)
	names := make(map[string]bool)
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			units := nvidiaUnits(&list[i])
			if name, n := p.requested(list[i].Name); n > 0 && strings.HasPrefix(name, resourcename.NVIDIAPrefix) && len(name) <= unitcount.MaxName {
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
		peak := charges.Peak(charges.SpansOf(&pod.Spec, func(c *corev1.Container) quota.Charge { return quota.Charge{GPUs: perContainer[c][name]} }))
		out = unitcount.Add(out, name, peak.GPUs)
	}
	return out
}

// nvidiaUnits is how many units a container carries of each resource of NVIDIA's.
func nvidiaUnits(c *corev1.Container) map[string]int64 {
	units := make(map[string]int64)
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for name, q := range list {
			if n := quantity.WholeUnits(q); n > 0 && strings.HasPrefix(string(name), resourcename.NVIDIAPrefix) {
				units[string(name)] = max(units[string(name)], n)
			}
		}
	}
	return units
}

// requested is what the named container requested before it was planned. A Promise that is nil gave nobody anything.
func (p *Promise) requested(container string) (resource string, units int64) {
	if p == nil {
		return "", 0
	}
	for i := range p.Request.Containers {
		if r := &p.Request.Containers[i]; r.Name == container {
			return cmp.Or(r.Resource, api.ResourceGPU), r.GPUs
		}
	}
	return "", 0
}

// RenamedAway are the resources that a pod with this Promise requested and does not carry, in the order of their names.
func (p *Promise) RenamedAway(pod *corev1.Pod) (out []string) {
	for c := range podspec.Containers(&pod.Spec) {
		name, n := p.requested(c.Name)
		if _, carried := c.Resources.Limits[corev1.ResourceName(name)]; n > 0 && !carried && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
