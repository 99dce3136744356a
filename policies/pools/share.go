package pools

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// Devices have seven compute slices for MIG. These profiles are of devices that have four: the A30 and the RTX PRO 6000, whose
// smallest has a name that larger devices use, too.
var (
	profileText = regexp.MustCompile(`^([1-7])g\.[0-9]+gb`) // 1g.10gb.me has media extensions
	ofFour      = []string{"1g.6gb", "2g.12gb", "4g.24gb", "2g.48gb", "4g.96gb"}
)

// migSlices is how many of a device's compute slices an instance has. One that cannot be read counts as all of them.
func migSlices(profile, product string) (held, all int64) {
	read := profileText.FindStringSubmatch(profile)
	if read == nil {
		return 1, 1
	}
	held, all = int64(read[1][0]-'0'), 7
	if slices.Contains(ofFour, read[0]) || read[0] == "1g.24gb" && strings.Contains(product, "RTX") {
		all = 4
	}
	return held, all
}

// memoryParts are the parts into which MIG divides the memory of a device; an instance has some of them. An A30 has four, which
// are two each.
const memoryParts = 8

// MemoryShare is how much of the device's memory an instance of the pool has, in parts; none: not known. What is usable of a part
// is a little less than an eighth of what the device has.
func (p *Pool) MemoryShare() quantity.Fraction {
	instance, device := int64(p.InstanceMemory), int64(p.DeviceMemory)
	if instance == 0 || device == 0 {
		instance, device = numberIn(profileMemory, p.MIGProfile), numberIn(productMemory, p.Product)
	}
	if instance == 0 || device == 0 {
		return quantity.Fraction{}
	}
	return quantity.Fraction{Num: min((memoryParts*instance+device/2)/device, memoryParts), Den: memoryParts}
}

// Under MIG strategy single no label has the device's memory, but its product may: NVIDIA-A100-SXM4-80GB-MIG-1g.20gb.
var (
	profileMemory = regexp.MustCompile(`^[1-7]g\.([0-9]{1,4})gb`)
	productMemory = regexp.MustCompile(`\b([0-9]{1,4})GB\b`)
)

func numberIn(pattern *regexp.Regexp, text string) int64 {
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, _ := strconv.ParseInt(found[1], 10, 64)
	return n
}
