package strategies

import (
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
)

// exclusive gives a container whole devices.
func exclusive() Strategy {
	return Strategy{
		Name:   "exclusive",
		Doc:    "whole devices, shared with nobody",
		Unit:   UnitDevice,
		View:   frameworks.ViewWhole,
		Tier:   api.TierHardware,
		Await:  api.ResourceGPU,
		Inject: func(Grant) Injection { return Injection{} },
	}
}
