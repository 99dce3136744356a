package doctor

import "github.com/gpuslice/gpuslice/policies/pools"

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
