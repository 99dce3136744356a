package pools

import (
	"regexp"
	"slices"
	"strings"
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
