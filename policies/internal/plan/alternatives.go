package plan

import (
	"slices"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// claimsInstances reports whether claims can take each instance of the candidate.
func (c *candidate) claimsInstances() bool {
	return !slices.ContainsFunc(c.containers, func(p placed) bool { return !p.pool.ClaimsInstances || p.request.GPUs != 1 })
}

// afterInstances is the candidate with instances like those of another before its shares. ok is false where an instance might be smaller
// than the slice, or what the container carries depends on the device.
func (c *candidate) afterInstances(in *Input, chosen *candidate, fitting []candidate) (both candidate, ok bool) {
	both = *c
	both.containers = slices.Clone(c.containers)
	for i := range both.containers {
		p := &both.containers[i]
		p.first = instancesOf(in, chosen.containers[i].pool.MIGProfile, p.size.slice)
		if p.first.profile == "" || p.size.fromT {
			return both, false
		}
	}
	for i := range fitting {
		if of := &fitting[i]; of.strategy == chosen.strategy && of.claimsInstances() && of.sameProfiles(chosen) {
			both.instances = append(both.instances, of)
		}
	}
	return both, true
}

// instancesOf is what a claim may get of a profile, on any pool; the zero value where one of them has no room for the slice.
func instancesOf(in *Input, profile string, slice quantity.MiB) (out instance) {
	for i := range in.Pools {
		p := &in.Pools[i]
		if !p.ClaimsInstances || p.MIGProfile != profile {
			continue
		}
		if p.Usable() < slice {
			return instance{}
		}
		out = instance{profile, max(out.memory, p.Usable()), max(out.share, p.Share(slice))}
	}
	return out
}

// sameProfiles reports whether the candidates give each container an instance of the same profile.
func (c *candidate) sameProfiles(other *candidate) bool {
	return slices.EqualFunc(c.containers, other.containers, func(a, b placed) bool { return a.pool.MIGProfile == b.pool.MIGProfile })
}
