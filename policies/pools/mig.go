package pools

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/mig"
)

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

// Devices have seven compute slices for MIG. These profiles are of devices that have four: the A30 and the RTX PRO 6000, whose
// smallest has a name that larger devices use, too.
var ofFour = []mig.Profile{{Slices: 1, Gigabytes: 6}, {Slices: 2, Gigabytes: 12},
	{Slices: 4, Gigabytes: 24}, {Slices: 2, Gigabytes: 48}, {Slices: 4, Gigabytes: 96}}

// migSlices is how many of a device's compute slices an instance has. One that cannot be read counts as all of them.
func migSlices(profile, product string) (held, all int64) {
	read, ok := mig.Parse(profile)
	if !ok || read.Compute > 0 || read.Slices > 7 {
		return 1, 1
	}
	read.Attributes = "" // 1g.10gb.me has media extensions
	if slices.Contains(ofFour, read) || read == (mig.Profile{Slices: 1, Gigabytes: 24}) && strings.Contains(product, "RTX") {
		return int64(read.Slices), 4
	}
	return int64(read.Slices), 7
}

// productMemory is a device's memory in gigabytes. Under MIG strategy single no label has it, but the product may:
// NVIDIA-A100-SXM4-80GB-MIG-1g.20gb.
var productMemory = regexp.MustCompile(`\b([0-9]{1,4})GB\b`)

// memoryShare is how many parts of the device's memory an instance of the pool has; 0: not known.
func (p *Pool) memoryShare() int64 {
	if p.InstanceMemory > 0 && p.DeviceMemory > 0 {
		return min(partsOf(int64(p.InstanceMemory), int64(p.DeviceMemory)), memoryParts)
	}
	profile, ok := mig.Parse(p.MIGProfile)
	found := productMemory.FindStringSubmatch(p.Product)
	if !ok || found == nil {
		return 0
	}
	device, _ := strconv.ParseInt(found[1], 10, 64) // the pattern has at most four digits
	if device == 0 {
		return 0
	}
	return min(partsOf(int64(profile.Gigabytes), device), memoryParts)
}
