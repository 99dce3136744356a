package policies

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Lint returns valid settings of a policy that are probably mistakes, each with its path. pools are the known ones;
// sizes are checked only against pools of known size.
func Lint(p *config.Policy, offered []pools.Pool) (warnings []string) {
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	if p.Off() && !reflect.ValueOf(p.Quota).IsZero() {
		warn("quota: mode is off, so nothing is counted and nothing denied; write mode: opt-in to have the quota held")
	}
	if p.OptOut && p.Mode != modes.Transparent {
		warn("optOut: it means something in mode transparent only; in mode %s a pod that requests no slice gets none anyway", p.Mode)
	}
	for _, name := range p.Idle.Set() {
		if p.Guard.Mode == modes.GuardSidecar {
			warn("idle.%s: only an agent sees what runs in a slice, and guard.mode is %s; write guard.mode: %s",
				name, modes.GuardSidecar, modes.GuardAuto)
		}
	}
	if p.Mode == modes.Transparent && p.DefaultSlice == nil {
		warn("defaultSlice: mode is transparent and there is none, so a pod without a size is denied")
	}
	for i := range p.Pools.Declared {
		if d := &p.Pools.Declared[i]; d.Resource != "" && !strings.HasPrefix(d.Resource, nvidia.ResourcePrefix) {
			warn("pools.declared[%d].resource: the webhook is called for pods that name a resource of %s; one that names only %s is seen where it has one of our labels, "+
				"and no quota holds for others; have the nodes offer a name of %s, or add this one to the match conditions of the webhook configurations",
				i, nvidia.ResourcePrefix, d.Resource, nvidia.ResourcePrefix)
		}
	}
	largest, known := largestSlice(p, offered)
	if !known {
		return warnings
	}
	for _, name := range slices.Sorted(maps.Keys(p.Classes)) {
		if size := p.Classes[name].Memory; size > largest {
			warn("classes[%s].memory: %s fits no pool that is known, the largest slice there is has %s", name, size, largest)
		}
	}
	if p.DefaultSlice != nil && p.DefaultSlice.Memory > largest {
		warn("defaultSlice.memory: %s fits no pool that is known, the largest slice there is has %s", p.DefaultSlice.Memory, largest)
	}
	return warnings
}

// largestSlice is the largest slice on pools of the strategies that p allows; known is false if the size of one of them
// is unknown, or if there is none.
func largestSlice(p *config.Policy, offered []pools.Pool) (largest quantity.MiB, known bool) {
	for i := range offered {
		pool := &offered[i]
		if !slices.Contains(p.Strategies, pool.Strategy) {
			continue
		}
		if pool.Usable() == 0 {
			return 0, false
		}
		largest, known = max(largest, pool.Usable()), true
	}
	return largest, known
}
