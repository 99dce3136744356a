package plan

import (
	"github.com/gpuslice/gpuslice/policies/internal/claimtemplate"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// claim gives the container a claim of its slice, and of what is kept free beside it. Two containers never share one: each may reach
// all of its slice.
func (w *builder) claim(p *placed, c *promise.Container, alone bool) {
	template := claimtemplate.Template{Class: p.pool.DeviceClass, Memory: p.size.slice + p.pool.Reserve, Count: int(p.request.GPUs), Share: p.pool.ClaimsShares}
	if p.dependsOnT() {
		template.Of = p.pool.DeviceMemory
	}
	c.Claim, c.Template = podspec.ClaimName(p.request.Name), template.Name()
	if alone {
		c.Claim = podspec.OnlyClaim
	}
	w.note("%q claims %s of each device, of which %s stay free beside the slice", p.request.Name, template.Memory, p.pool.Reserve)
}
