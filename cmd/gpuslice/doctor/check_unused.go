package doctor

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/pools"
)

// checkUnusedInstances looks for MIG instances of a profile that no pod requests.
func checkUnusedInstances(f *Facts) []Finding {
	var all []Finding
	for _, p := range f.unusedPools(func(p *pools.Pool) bool { return p.MIGProfile != "" && p.DeviceClass == "" }) {
		all = append(all, newFinding(Note, "no pod has a MIG instance of pool %s", p.Name).
			With("pool/"+p.Name, "MIG profile", p.MIGProfile).
			WithRemedy("gpuslice plan --strategies mig proposes instances for what pods request"))
	}
	return all
}

// checkUnusedReplicas looks for replicas of a size that no pod requests.
func checkUnusedReplicas(f *Facts) []Finding {
	var all []Finding
	for _, p := range f.unusedPools(func(p *pools.Pool) bool { return p.Replicas > 1 && p.MIGProfile == "" && p.DeviceClass == "" }) {
		all = append(all, newFinding(Note, "no pod has a replica of pool %s", p.Name).
			With("pool/"+p.Name, "replicas", decimal(p.Replicas)).With("pool/"+p.Name, "memory of a replica", p.Usable().Human()).
			WithRemedy("gpuslice plan proposes how to divide the GPUs for what pods request"))
	}
	return all
}

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
