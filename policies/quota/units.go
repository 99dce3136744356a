package quota

import (
	"maps"
	"slices"

	"github.com/gpuslice/gpuslice/policies/internal/resourcename"
)

// MaxUnitNames bounds the resources that one Holding tells apart: whoever writes pods can make names up, and a shared
// ledger must not grow by them.
const MaxUnitNames = 16

// MaxUnitName bounds their names: Kubernetes allows 63 characters after the slash.
const MaxUnitName = len(resourcename.NVIDIAPrefix) + 63

// otherUnits stands for all resources beyond MaxUnitNames. They count for every quota.
const otherUnits = "*"

// AddUnits adds n of a resource to units, which it changes and returns.
func AddUnits(units map[string]int64, name string, n int64) map[string]int64 {
	if units == nil {
		units = make(map[string]int64)
	}
	if _, known := units[name]; !known && len(units) >= MaxUnitNames {
		name = otherUnits
	}
	units[name] = saturateSum(units[name], n)
	return units
}

// plusUnits is what a and b count for together. It changes neither.
func plusUnits(a, b map[string]int64) map[string]int64 {
	out := maps.Clone(a)
	for _, name := range slices.Sorted(maps.Keys(b)) {
		out = AddUnits(out, name, b[name])
	}
	return out
}
