package strategies

import (
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// timeSlicing shares a device by turns: every replica sees the whole memory, and nothing but the guard, the driver's
// own limit or the framework holds a slice.
func timeSlicing() Strategy {
	return Strategy{
		Name:         "time-slicing",
		Doc:          "processes take turns on a device; memory is not divided by the device itself",
		Unit:         UnitShare,
		OnInstances:  true,
		MaxReplicas:  quantity.MaxReplicas,
		Granular:     true,
		DriverLimits: true,
		View:         frameworks.ViewWhole,
		Tier:         api.TierNone,
		Labels:       map[LabelSource]string{LabelsDiscovery: "time-slicing", LabelsGKE: "time-sharing"},
		Unlabeled:    true,
		Await:        nvidia.SharedGPU,
		Inject:       driverLimit,
	}
}
