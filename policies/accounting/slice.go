package accounting

import (
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// OfSlice is the charge of a container that holds a slice on each of so many GPUs, and so many devices in all. Whole
// devices count as gpus, shares of one as slices.
func OfSlice(whole bool, slice quantity.MiB, gpus int64, devices quantity.Devices) quota.Charge {
	c := quota.Charge{Memory: min(quantity.MiB(quantity.Product(int64(slice), gpus)), quantity.MaxMemory), Devices: devices}
	if whole {
		c.GPUs = gpus
	} else {
		c.Slices = gpus
	}
	return c
}
