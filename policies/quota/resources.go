package quota

import (
	"maps"
	"slices"

	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// MaxUnits bounds the resources that one Holding lists: whoever writes pods can make names up, and a shared ledger must
// not grow by them.
const MaxUnits = 16

// MaxUnitName bounds their names: Kubernetes allows 63 characters after the slash.
const MaxUnitName = len(nvidia.ResourcePrefix) + 63

// otherUnits is the name of all resources beyond MaxUnits. They count for every quota.
const otherUnits = "*"

// AddUnits adds n of a resource to units, which it changes and returns.
func AddUnits(units map[string]int64, name string, n int64) map[string]int64 {
	if units == nil {
		units = make(map[string]int64)
	}
	if _, known := units[name]; !known && len(units) >= MaxUnits {
		name = otherUnits
	}
	units[name] = quantity.Sum(units[name], n)
	return units
}

// plusUnits is the sum of a and b. It changes neither.
func plusUnits(a, b map[string]int64) map[string]int64 {
	out := maps.Clone(a)
	for _, name := range slices.Sorted(maps.Keys(b)) {
		out = AddUnits(out, name, b[name])
	}
	return out
}
