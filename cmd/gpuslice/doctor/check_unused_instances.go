package doctor

import "github.com/gpuslice/gpuslice/policies/pools"

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
