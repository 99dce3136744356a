package strategies

import (
	"fmt"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/rulename"
)

// claim shares a device by claims of memory: the scheduler places slices of any size by what is free on each device. Nothing on
// the node holds a slice, so that the guard or the framework has to.
func claim() Strategy {
	return Strategy{
		Name:     "claim",
		Doc:      "a claim of exactly the slice's memory, by dynamic resource allocation; memory is counted, and not divided by the device itself",
		Unit:     UnitShare,
		Claims:   true,
		Listed:   true,
		View:     frameworks.ViewWhole,
		Tier:     api.TierNone,
		Inject:   func(Grant) Injection { return Injection{} },
		Requires: claimRequires,
	}
}

// claimRequires denies a share of compute: the drivers have nothing to claim it by. And a memory-limit above the slice: what is
// not claimed is given to others firmly.
func claimRequires(p *Placement) *api.Violation {
	switch {
	case p.Burst > 0:
		return &api.Violation{Rule: rulename.Strategy, Reason: "memory-limit above the slice", Detail: fmt.Sprintf(
			"container %q may reach %s, and others on pool %s claim what it does not; remove memory-limit, or write %s: %q", p.Container.Name, p.Burst, p.Pool, api.LabelMemory, p.Burst)}
	case p.Compute == 0:
		return nil
	}
	return &api.Violation{Rule: rulename.Strategy, Reason: "compute is not held", Detail: fmt.Sprintf(
		"container %q requests compute %d, and nothing on pool %s holds it; remove label %s",
		p.Container.Name, p.Compute, p.Pool, api.LabelCompute)}
}
