package layout

import (
	"cmp"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
)

// largest are the kinds with devices, without those of which another kind has the same devices, for the same pods, with at least as much
// CPU and memory. Pods that fit a kind that is left out fit that other kind together too, so a bound is the same without it.
func largest(f *demand.Fleet) (kinds []int) {
	type devices struct {
		model  string
		memory int64
		mig    bool
		pods   string // that may use them
	}
	constraints := constraintsOf(f)
	alike := map[devices][]int{}
	for _, kind := range f.Used() {
		k := &f.Kinds[kind]
		allowed := make([]byte, len(constraints))
		for i, allows := range constraints {
			if allows[kind] {
				allowed[i] = 1
			}
		}
		key := devices{k.Model, k.DeviceMemory, k.MIG, string(allowed)}
		alike[key] = append(alike[key], kind)
	}
	for _, same := range alike {
		slices.SortFunc(same, func(a, b int) int {
			return cmp.Or(cmp.Compare(f.Kinds[b].CPU, f.Kinds[a].CPU), cmp.Compare(f.Kinds[b].Memory, f.Kinds[a].Memory), cmp.Compare(a, b))
		})
		memory := int64(-1) // the most of those with more CPU
		for _, kind := range same {
			if k := &f.Kinds[kind]; k.Memory > memory {
				memory = k.Memory
				kinds = append(kinds, kind)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

// constraintsOf are the constraints that pods share, each once.
func constraintsOf(f *demand.Fleet) (all [][]bool) {
	seen := map[*bool]bool{}
	for i := range f.Pods {
		if allowed := f.Pods[i].Allowed; len(allowed) > 0 && !seen[&allowed[0]] {
			seen[&allowed[0]] = true
			all = append(all, allowed)
		}
	}
	return all
}
