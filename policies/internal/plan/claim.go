package plan

import (
	"fmt"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// claim gives the container a claim of its slice, and of the reserve beside it. Two containers never share one: each
// may reach all of its slice.
func (w *builder) claim(p *placed, c *promise.Container, alone bool) {
	template := p.template()
	c.Claim, c.Template = podspec.ClaimName(p.request.Name), template.Name()
	if alone {
		c.Claim = podspec.OnlyClaim
	}
	if p.preferred.profile != "" {
		c.Charged = max(p.preferred.memory, p.size.slice)
		w.note(
			"%q gets a MIG instance %s, which the hardware holds, where one is free when it is scheduled, and else the claim; it counts for %s",
			p.request.Name, p.preferred.profile, c.Charged)
	}
	w.note("%q claims %s of each device, of which %s stay free beside the slice", p.request.Name, template.Memory, p.pool.Reserve)
}

func (p *placed) template() claims.Template {
	t := claims.Template{Class: p.pool.DeviceClass, Memory: p.size.slice + p.pool.Reserve,
		Count: int(p.request.GPUs), Share: p.pool.ClaimsShares, Preferred: p.preferred.profile}
	if p.dependsOnDevice() {
		t.Of = p.pool.DeviceMemory
	}
	return t
}

// unclaimable is the reason why a container's claim is impossible; nil: all are possible.
func (c *candidate) unclaimable() *api.Violation {
	for i := range c.containers {
		if err := c.containers[i].template().Validate(); err != nil {
			return &api.Violation{Rule: api.RuleStrategy, Reason: "a claim that cannot be made",
				Detail: fmt.Sprintf("container %q on %s: %v", c.containers[i].request.Name, c.pool().Describe(), err)}
		}
	}
	return nil
}
