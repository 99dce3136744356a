package plan

import (
	"regexp"
	"strconv"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// holdsShare reports whether an instance of the pool is at least the fraction of its device.
func holdsShare(p *pools.Pool, f quantity.Fraction) bool {
	if p.InstanceMemory == 0 || p.DeviceMemory == 0 || f.Zero() {
		return false
	}
	largest := p.LargestFraction()
	return largest.Den*f.Num <= largest.Num*f.Den
}

// gigabytes is the memory in the name of a MIG profile: 10 of "1g.10gb" and of "1g.10gb.me".
var gigabytes = regexp.MustCompile(`\.([0-9]{1,4})gb`)

// namesAmount reports whether the profile's name has at least the amount, which is more than an instance has usable.
func namesAmount(p *pools.Pool, amount quantity.MiB) bool {
	found := gigabytes.FindStringSubmatch(p.MIGProfile)
	if p.InstanceMemory == 0 || found == nil {
		return false
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	return err == nil && amount <= quantity.MiB(n<<10)
}
