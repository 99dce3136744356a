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

// memoryShare is how many parts of the device's memory an instance of the pool has; 0: not known.
func (p *Pool) memoryShare() int64 {
	q := Pool{InstanceMemory: p.InstanceMemory, DeviceMemory: p.DeviceMemory}
	if q.InstanceMemory == 0 || q.DeviceMemory == 0 {
		q.InstanceMemory, q.DeviceMemory = numberIn(profileMemory, p.MIGProfile), numberIn(productMemory, p.Product)
	}
	if q.InstanceMemory == 0 || q.DeviceMemory == 0 {
		return 0
	}
	return min(q.partsOf(), memoryParts)
}

// Under MIG strategy single no label has the device's memory, but its product may: NVIDIA-A100-SXM4-80GB-MIG-1g.20gb.
var (
	profileMemory = regexp.MustCompile(`^[1-7]g\.([0-9]{1,4})gb`)
	productMemory = regexp.MustCompile(`\b([0-9]{1,4})GB\b`)
)

func numberIn(pattern *regexp.Regexp, text string) quantity.MiB {
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, _ := strconv.ParseInt(found[1], 10, 64)
	return quantity.MiB(n)
}
