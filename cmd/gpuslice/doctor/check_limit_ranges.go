package doctor

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// checkLimitRanges looks for LimitRanges that leave no room for the guard, and for those that give a GPU to pods that request none.
func checkLimitRanges(f *Facts) []Finding {
	governed := map[string]bool{}
	for _, g := range f.Governed() {
		governed[g.Name] = true
	}
	guard := guardResources(f)
	var all []Finding
	for _, r := range f.Limits {
		if !governed[r.Namespace] {
			continue
		}
		where := object("limitrange", r.Namespace, r.Name)
		denies := newFinding(Problem, "a LimitRange leaves no room for the guard's containers: pods of this namespace get no guard")
		gives := newFinding(Problem, "a LimitRange gives a GPU to each container that requests none")
		for _, item := range r.Spec.Limits {
			if item.Type != corev1.LimitTypeContainer {
				continue
			}
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if most, ok := item.Max[name]; ok && most.Cmp(guard[name]) < 0 {
					denies = denies.With(where, "max["+string(name)+"]", most.String())
				}
			}
			for _, name := range slices.Sorted(maps.Keys(item.Default)) {
				if amount := item.Default[name]; strings.HasPrefix(string(name), nvidia.ResourcePrefix) && !amount.IsZero() {
					gives = gives.With(where, "default["+string(name)+"]", amount.String())
				}
			}
			for _, name := range slices.Sorted(maps.Keys(item.Max)) {
				if amount := item.Max[name]; strings.HasPrefix(string(name), nvidia.ResourcePrefix) {
					gives = gives.With(where, "max["+string(name)+"]", amount.String())
				}
			}
		}
		cpu, memory := guard[corev1.ResourceCPU], guard[corev1.ResourceMemory]
		all = append(all, withEvidence(
			denies.WithRemedy("the guard has %s CPU and %s memory: change the chart's values guard.cpu and guard.memory, or the LimitRange",
				cpu.String(), memory.String()),
			gives.WithRemedy("kubectl -n %s edit limitrange %s, and remove the GPU from max, min, default and defaultRequest", r.Namespace, r.Name))...)
	}
	return all
}

// guardResources are the requests of each of the guard's containers.
func guardResources(f *Facts) corev1.ResourceList {
	cpu, memory := installed.GuardCPU, installed.GuardMemory
	if g := installed.Guard(f.Deployment); g != nil {
		cpu, memory = cmp.Or(g.CPU, cpu), cmp.Or(g.Memory, memory)
	}
	list := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if q, err := resource.ParseQuantity(text); err == nil {
			list[name] = q
		}
	}
	return list
}
