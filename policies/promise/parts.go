package promise

import (
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// Granular reports whether the container requests parts of one device. They are the parts at that time: if a device has other
// parts now, Count is another amount of memory.
func (c *Container) Granular() bool { return c.Granule > 0 }

// holdsSlice reports whether the parts are of one device, and the slice fits them.
func (c *Container) holdsSlice() bool {
	return c.Replicas > 1 && c.Replicas <= quantity.MaxReplicas && c.Granule <= quantity.MaxMemory &&
		c.Count > 0 && c.Count <= int64(c.Replicas) && c.Rounding() >= 0
}

// Rounding is the memory of the container's parts beyond its slice.
func (c *Container) Rounding() quantity.MiB {
	return quantity.MiB(c.Count)*c.Granule - c.Slice
}

// GPUs is on how many devices the container has its slice.
func (c *Container) GPUs() int64 {
	if c.Granular() {
		return 1
	}
	return c.Count
}
