package policies

import "github.com/gpuslice/gpuslice/policies/internal/frameworks"

// exclusive gives a container whole devices.
func exclusive() Strategy {
	return Strategy{
		Name:    "exclusive",
		Doc:     "whole devices, shared with nobody",
		Several: true,
		View:    frameworks.ViewWhole,
		Tier:    TierHardware,
		Inject:  func(SliceGrant) Injection { return Injection{} },
	}
}
