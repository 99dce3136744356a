package draw

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
)

var at = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// models are the pools of generated fleets.
var models = []inventory.Pool{
	{Name: "l4-time-slicing-4", Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing", Product: "NVIDIA-L4", DeviceMemory: 23034,
		Slice: 5585, Reserve: 692, Replicas: 4, Share: 0.25},
	{Name: "a100-whole", Resource: "nvidia.com/gpu", Strategy: "exclusive", Product: "NVIDIA-A100-SXM4-80GB",
		DeviceMemory: 81920, Slice: 79872, Replicas: 1, Share: 1},
	{Name: "h100-mig-1g", Resource: "nvidia.com/mig-1g.10gb", Strategy: "mig", Product: "NVIDIA-H100-80GB-HBM3", DeviceMemory: 81559,
		InstanceMemory: 9984, Slice: 9984, Replicas: 1, Share: 1.0 / 7, MIGProfile: "1g.10gb"},
	{Name: "h100-mig-3g", Resource: "nvidia.com/mig-3g.40gb", Strategy: "mig", Product: "NVIDIA-H100-80GB-HBM3", DeviceMemory: 81559,
		InstanceMemory: 40448, Slice: 40448, Replicas: 1, Share: 0.5, MIGProfile: "3g.40gb"},
	{Name: "h200-claims", Class: "gpu.nvidia.com", Strategy: "claim", Product: "NVIDIA-H200",
		DeviceMemory: 143771, Slice: 143000, Reserve: 512, Claims: true},
}

// generated is a fleet of so many nodes with eight GPUs each, of which pods hold some four fifths. The same seed has the same fleet.
func generated(seed uint64, nodes int) *inventory.Fleet {
	r := rand.New(rand.NewPCG(seed, seed))
	f := inventory.New(at)
	f.Pools = slices.Clone(models)
	for i := range nodes {
		n := inventory.Node{Name: fmt.Sprintf("gpu-node-%04d", i), NotReady: r.IntN(60) == 0, Unschedulable: r.IntN(40) == 0}
		kind := r.IntN(4)
		p := models[kind]
		n.GPUs = inventory.GPUs{Product: p.Product, Count: 8, Memory: p.DeviceMemory}
		switch kind {
		case 2:
			n.Offers = []inventory.Offer{{Pool: "h100-mig-1g", Units: 24}, {Pool: "h100-mig-3g", Units: 8}}
		case 3:
			n.GPUs.Product, n.GPUs.Memory = models[4].Product, models[4].DeviceMemory
			n.Offers = []inventory.Offer{{Pool: "h200-claims", Units: 8}}
		default:
			n.Offers = []inventory.Offer{{Pool: p.Name, Units: 8 * int64(p.Replicas)}}
			if r.IntN(30) == 0 {
				n.Offers[0].Units -= int64(p.Replicas) // a device that the plugin does not offer
			}
		}
		f.Nodes = append(f.Nodes, n)
		for _, o := range n.Offers {
			addPods(f, r, n.Name, o)
		}
	}
	for i := range min(nodes/20, 200) {
		f.Pods = append(f.Pods,
			inventory.Pod{Namespace: "team-vision", Name: fmt.Sprintf("sweep-%d", i), Phase: "Pending",
				Created: at.Add(-time.Duration(i) * time.Minute),
				Slices:  []inventory.Slice{{Container: "main", Memory: 40 << 10, Resource: "nvidia.com/gpu"}},
				Waiting: "0/120 nodes are available: 100 Insufficient nvidia.com/gpu, 20 node(s) had untolerated taint(s)."})
	}
	for _, name := range teams {
		f.Quotas = append(f.Quotas, inventory.Quota{Budget: "namespace/" + name, Namespaces: []string{name}, Figures: []quota.Figure{
			{Quota: "quota", Dimension: "memory", Limit: 1 << 42, Used: float64(r.Int64N(1 << 42))},
			{Quota: "quota", Dimension: "slices", Limit: 64, Used: 64}}})
	}
	f.Sort()
	return f
}

var teams = []string{"team-notebooks", "team-vision", "team-language", "batch", "inference"}

func addPods(f *inventory.Fleet, r *rand.Rand, node string, o inventory.Offer) {
	var p *inventory.Pool
	for i := range models {
		if models[i].Name == o.Pool {
			p = &models[i]
		}
	}
	for unit := range o.Units {
		if r.IntN(5) == 0 {
			continue
		}
		size := int64(p.Slice) * int64(30+r.IntN(70)) / 100
		pod := inventory.Pod{Namespace: teams[r.IntN(len(teams))],
			Name: fmt.Sprintf("%s-%s-%d", []string{"train", "serve", "notebook"}[r.IntN(3)], node[9:], len(f.Pods)),
			Node: node, Phase: "Running", Created: at, Bound: at,
			Owner: inventory.Owner{Kind: "Job", Name: "train"}}
		s := inventory.Slice{Container: "main", Pool: p.Name, Resource: p.Resource, Count: 1, Memory: api.MiB(size),
			Strategy: p.Strategy, Tier: api.TierGuard, Observed: api.TierGuard}
		if r.IntN(4) > 0 {
			peak := size * int64(r.IntN(101)) / 100
			device := fmt.Sprintf("GPU-%s-%d", node, unit*8/o.Units)
			s.Usage = []inventory.Usage{{Device: device, UsedBytes: peak << 20 * 9 / 10, PeakBytes: peak << 20}}
		}
		if p.Strategy != "exclusive" || r.IntN(2) == 0 {
			pod.Slices = []inventory.Slice{s}
		} else {
			pod.Requests = inventory.Resources{p.Resource: 1}
		}
		f.Pods = append(f.Pods, pod)
	}
}
