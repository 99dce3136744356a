package pools

import "github.com/gpuslice/gpuslice/policies/internal/quantity"

// memoryParts are the parts into which MIG divides the memory of a device; an instance has some of them. An A30 has four, which
// are two each.
const memoryParts = 8

// partsOf returns how many parts of a device's memory an instance has, both in the same unit. The usable memory of a
// part is a little less than an eighth of the device.
func partsOf(instance, device int64) int64 { return (memoryParts*instance + device/2) / device }

// LargestFraction is the largest share of a device that a slice of the pool can be.
func (p *Pool) LargestFraction() quantity.Fraction {
	switch {
	case p.InstanceMemory > 0:
		return quantity.Fraction{Num: partsOf(int64(p.InstanceMemory), int64(p.DeviceMemory)), Den: memoryParts}
	case p.Sharing().Claims:
		return quantity.Fraction{Num: 1, Den: 1}
	}
	return quantity.Fraction{Num: 1, Den: int64(p.Replicas)}
}

// Part is the slice that a fraction of a device is. So many of them fit a device.
func (p *Pool) Part(f quantity.Fraction) quantity.MiB {
	switch {
	case p.Sharing().Claims:
		return max(f.Of(p.DeviceMemory)-p.Reserve, 1)
	case p.Granular:
		return f.Of(p.Usable()) // else n parts of n would not hold the whole, by rounding
	}
	return f.Of(p.DeviceMemory - p.Reserve)
}
