package plan

import (
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/mig"
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

// namesAmount reports whether the profile's name has at least the amount, which is more than an instance has usable.
func namesAmount(p *pools.Pool, amount quantity.MiB) bool {
	profile, ok := mig.Parse(p.MIGProfile)
	return ok && p.InstanceMemory > 0 && amount <= quantity.MiB(profile.Gigabytes<<10)
}
