package recommend

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// offers are the sizes of a cluster's pools. Without pools any size is possible.
type offers struct {
	pools   []pools.Pool
	problem string // why the pools are not known
}

// readOffers reads the pools of a cluster. Without the right to list nodes, sizes are not rounded, and a note has the reason.
func readOffers(ctx context.Context, client kubernetes.Interface) offers {
	nodes, err := installed.Nodes(ctx, client)
	objects := webhookcluster.Objects{}
	if err == nil {
		objects.Source, err = installed.Source(ctx, client, nodes)
	}
	if err != nil {
		return offers{problem: fmt.Sprintf("sizes are not rounded to what pools give: %v", err)}
	}
	return offers{pools: webhookcluster.ReadSnapshot(objects).Pools()}
}

// card is the memory of a GPU if all pools have the same; 0: unknown.
func (o offers) card() (memory api.MiB) {
	for _, p := range o.pools {
		if memory != 0 && p.DeviceMemory != memory {
			return 0
		}
		memory = p.DeviceMemory
	}
	return memory
}

// granule is the unit to which a size is rounded up if any is possible.
const granule = 256

// fit is the least that a pool gives for a size in MiB, and the name of the pool; 0: no pool gives so much. Without pools it is at
// most the memory of the device; 0: that is unknown.
func (o offers) fit(size, device api.MiB) (given api.MiB, pool string) {
	if len(o.pools) == 0 {
		if given = roundUp(size, granule); device > 0 {
			given = min(given, max(device, size))
		}
		return given, ""
	}
	for i := range o.pools {
		if here := give(&o.pools[i], size); here > 0 && (given == 0 || here < given) {
			given, pool = here, o.pools[i].Name
		}
	}
	return given, pool
}

// give is the least that a pool gives for a size; 0: it gives less.
func give(p *pools.Pool, size api.MiB) api.MiB {
	switch most := p.Usable(); {
	case size > most:
		return 0
	case p.Sharing().Claims:
		return min(roundUp(size, granule), most)
	}
	return p.Held(size)
}

func roundUp(size, step api.MiB) api.MiB { return (size + step - 1) / step * step }
