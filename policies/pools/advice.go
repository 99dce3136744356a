package pools

import (
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// AdvisedMemory is an amount of memory, in quotes and with how it may differ, for authors to write who named none: the usual one, or what
// the largest share has that one of the strategies gives.
func AdvisedMemory(all []Pool, allowed []api.StrategyName) string {
	const usual = 8 << 10
	var largest quantity.MiB
	for i := range all {
		if p := &all[i]; !p.Empty() && !p.Sharing().Whole() && slices.Contains(allowed, p.Strategy) {
			largest = max(largest, p.Usable())
		}
	}
	if largest == 0 || largest >= usual {
		return fmt.Sprintf("%q (or what it needs)", quantity.MiB(usual))
	}
	return fmt.Sprintf("%q (or less)", largest)
}
