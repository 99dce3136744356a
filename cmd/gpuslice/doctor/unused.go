package doctor

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/pools"
)

// unusedPools are pools that nodes offer, and of which no pod has a unit or waits for one. There are none where not all pods are known.
func (f *Facts) unusedPools(of func(*pools.Pool) bool) (unused []*pools.Pool) {
	if f.Held == nil || f.unread(whatPods) {
		return nil
	}
	all := f.snapshot().Pools()
	for i := range all {
		p := &all[i]
		used := !of(p) || f.Held[held{"", corev1.ResourceName(p.Resource)}]
		nodes := 0
		for _, kind := range p.Nodes {
			for _, n := range kind.Named {
				nodes++
				used = used || f.Held[held{n.Name, corev1.ResourceName(p.Resource)}]
			}
		}
		if !used && nodes > 0 {
			unused = append(unused, p)
		}
	}
	return unused
}
