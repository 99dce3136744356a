package unitcount

import (
	"maps"
	"slices"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/resourcename"
)

// MaxNames bounds the resources that one Holding tells apart: whoever writes pods can make names up, and a shared
// ledger must not grow by them.
const MaxNames = 16

// MaxName bounds their names: Kubernetes allows 63 characters after the slash.
const MaxName = len(resourcename.NVIDIAPrefix) + 63

// Other stands for all resources beyond MaxNames. They count for every quota.
const Other = "*"

// Add adds n of a resource to units, which it changes and returns.
func Add(units map[string]int64, name string, n int64) map[string]int64 {
	if units == nil {
		units = make(map[string]int64)
	}
	if _, known := units[name]; !known && len(units) >= MaxNames {
		name = Other
	}
	units[name] = quantity.Sum(units[name], n)
	return units
}

// Plus is what a and b count for together. It changes neither.
func Plus(a, b map[string]int64) map[string]int64 {
	out := maps.Clone(a)
	for _, name := range slices.Sorted(maps.Keys(b)) {
		out = Add(out, name, b[name])
	}
	return out
}
