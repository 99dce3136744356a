package pools

import "github.com/gpuslice/gpuslice/policies/internal/quantity"

// memoryParts are the parts into which MIG divides the memory of a device; an instance has some of them. An A30 has four, which
// are two each.
const memoryParts = 8

// partsOf is how many parts of the device's memory an instance of the pool has. What is usable of a part is a little less than
// an eighth of what the device has.
func (p *Pool) partsOf() int64 {
	return (memoryParts*int64(p.InstanceMemory) + int64(p.DeviceMemory)/2) / int64(p.DeviceMemory)
}

// LargestFraction is the largest share of a device that a slice of the pool can be.
func (p *Pool) LargestFraction() quantity.Fraction {
	switch {
	case p.InstanceMemory > 0:
		return quantity.Fraction{Num: p.partsOf(), Den: memoryParts}
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
		return f.Of(p.Usable()) // else n parts of n would not hold the whole, for what is lost in rounding
	}
	return f.Of(p.DeviceMemory - p.Reserve)
}
