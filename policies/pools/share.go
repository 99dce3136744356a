package pools

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/policies/mig"
)

// Devices have seven compute slices for MIG. These profiles are of devices that have four: the A30 and the RTX PRO 6000, whose
// smallest has a name that larger devices use, too.
var ofFour = []mig.Profile{{Slices: 1, Gigabytes: 6}, {Slices: 2, Gigabytes: 12}, {Slices: 4, Gigabytes: 24}, {Slices: 2, Gigabytes: 48}, {Slices: 4, Gigabytes: 96}}

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
