package pools

import (
	"regexp"
	"strconv"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// memoryParts are the parts into which MIG divides the memory of a device; an instance has some of them. An A30 has four, which
// are two each.
const memoryParts = 8

// partsOf is how many parts of the device's memory an instance of the pool has. What is usable of a part is a little less than
// an eighth of what the device has.
func (p *Pool) partsOf() int64 {
	return (memoryParts*int64(p.InstanceMemory) + int64(p.DeviceMemory)/2) / int64(p.DeviceMemory)
}

// HoldsShare reports whether an instance of the pool is at least the fraction of its device.
func (p *Pool) HoldsShare(f quantity.Fraction) bool {
	return p.InstanceMemory > 0 && p.DeviceMemory > 0 && !f.Zero() && memoryParts*f.Num <= p.partsOf()*f.Den
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

// gigabytes is the memory in the name of a MIG profile: 10 of "1g.10gb" and of "1g.10gb.me".
var gigabytes = regexp.MustCompile(`\.([0-9]{1,4})gb`)

// NamesAmount reports whether the profile's name has at least the amount, which is more than an instance has usable.
func (p *Pool) NamesAmount(amount quantity.MiB) bool {
	found := gigabytes.FindStringSubmatch(p.MIGProfile)
	if p.InstanceMemory == 0 || found == nil {
		return false
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	return err == nil && amount <= quantity.MiB(n<<10)
}
