package api

import "slices"

// Tier names the enforcement of a slice.
type Tier string

// The tiers, from none to the strongest.
const (
	TierNone      Tier = "none"
	TierFramework Tier = "framework" // allocator caps: cooperative, per process
	TierGuard     Tier = "guard"     // NVML watch and end: per container, within seconds
	TierMPS       Tier = "mps"       // pinned memory limit: per process, needs a live daemon
	TierDriver    Tier = "driver"    // per cgroup, by the driver itself
	TierHardware  Tier = "hardware"  // a MIG instance
)

var weakestFirst = []Tier{TierNone, TierFramework, TierGuard, TierMPS, TierDriver, TierHardware}

// Tiers lists the tiers, weakest first.
func Tiers() []Tier { return slices.Clone(weakestFirst) }

// AtLeast reports whether t is as strong as other. An empty tier is TierNone.
func (t Tier) AtLeast(other Tier) bool {
	return t.Rank() >= other.Rank()
}

func (t Tier) Rank() int { return max(slices.Index(weakestFirst, t), 0) }

// Strongest is the last of the strongest tiers; "": there is none.
func Strongest(tiers []Tier) (found Tier) {
	for _, t := range tiers {
		if t.AtLeast(found) {
			found = t
		}
	}
	return found
}
