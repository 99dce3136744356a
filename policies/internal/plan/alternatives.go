package plan

import (
	"slices"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// claimsInstances reports whether claims can take each instance of the candidate.
func (c *candidate) claimsInstances() bool {
	return !slices.ContainsFunc(c.containers, func(p placed) bool { return !p.pool.ClaimsInstances || p.request.GPUs != 1 })
}

// afterInstances returns the candidate with instances like those of another before its shares. ok is false if an
// instance might be smaller than the slice, or if the container's settings depend on the device.
func (c candidate) afterInstances(in *Input, chosen *candidate, fitting []candidate) (both *candidate, ok bool) {
	c.containers = slices.Clone(c.containers)
	for i := range c.containers {
		p := &c.containers[i]
		p.preferred = instancesOf(in, chosen.containers[i].pool.MIGProfile, p.size.slice)
		if p.preferred.profile == "" || p.size.fromDevice {
			return nil, false
		}
	}
	sameProfile := func(a, b placed) bool { return a.pool.MIGProfile == b.pool.MIGProfile }
	for i := range fitting {
		of := &fitting[i]
		if of.strategy == chosen.strategy && of.claimsInstances() && slices.EqualFunc(of.containers, chosen.containers, sameProfile) {
			c.instances = append(c.instances, of) // c is a copy whose list was empty
		}
	}
	return &c, true
}

// instancesOf is the instance of a profile that a claim may get, on any pool; the zero value if one of them has no room
// for the slice.
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
