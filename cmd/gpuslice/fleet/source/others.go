package source

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// others is how many nodes and pods have a resource that is named like NVIDIA's, and is none of GPUs that containers get from a pool.
type others struct{ nodes, pods int }

const maxOthers = 100 // names: pods of tenants may request any

func (r *reader) countOther(resource string, add func(*others)) {
	if !strings.HasPrefix(resource, nvidia.ResourcePrefix) || pools.IsGPU(resource, r.pools) {
		return
	}
	if r.others[resource] == nil {
		if len(r.others) == maxOthers {
			return
		}
		r.others[resource] = &others{}
	}
	add(r.others[resource])
}

// noteOthers names what is left out.
func (r *reader) noteOthers() {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.others)) {
		all = append(all, fmt.Sprintf("%s (nodes: %d, pods: %d)", name, r.others[name].nodes, r.others[name].pods))
	}
	if len(all) > 0 {
		text := shorten.Line("resources left out because they are not GPUs of a pool, such as network cards, amounts that other systems count, "+
			"and GPUs for virtual machines: "+cli.First(10, all), maxSentence)
		r.out.Notes = append(r.out.Notes, text)
		fmt.Fprintln(r.err, text)
	}
}
