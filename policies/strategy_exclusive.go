package policies

import "github.com/gpuslice/gpuslice/policies/internal/frameworks"

// exclusive gives a container whole devices.
func exclusive() Strategy {
	return Strategy{
		Name:   "exclusive",
		Doc:    "whole devices, shared with nobody",
		Unit:   UnitDevice,
		View:   frameworks.ViewWhole,
		Tier:   TierHardware,
		Await:  ResourceGPU,
		Inject: func(SliceGrant) Injection { return Injection{} },
	}
}
