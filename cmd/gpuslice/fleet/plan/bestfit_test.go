package plan

import (
	"math/rand/v2"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
)

// The sizes by which the trace's authors divide free resources, those of their largest node.
const (
	largestCPU     = 128_000
	largestDevices = 8 * demand.Whole
)

// bestFit is a fleet in which pods get exact parts of devices, placed by best fit as the authors of the trace openb define it
// (hkust-adsl/kubernetes-scheduler-simulator).
type bestFit struct {
	fleet *demand.Fleet
	nodes []exactNode
	best  []int
}

type exactNode struct {
	cpu, memory int64
	devices     []int // free thousandths of each
	free        int   // their sum
}

// newBestFit returns the fleet without pods.
func newBestFit(f *demand.Fleet) *bestFit {
	b := &bestFit{fleet: f}
	for _, n := range f.Nodes {
		k := f.Kinds[n.Kind]
		e := exactNode{cpu: k.CPU, memory: k.Memory, devices: make([]int, k.Devices), free: k.Devices * demand.Whole}
		for i := range e.devices {
			e.devices[i] = demand.Whole
		}
		b.nodes = append(b.nodes, e)
	}
	return b
}

// place places one pod, with ties at random, and reports whether it fits.
func (b *bestFit) place(p *demand.Pod, random *rand.Rand) bool {
	b.best = b.best[:0]
	highest := -1 << 30
	for i := range b.nodes {
		n := &b.nodes[i]
		if n.cpu < p.CPU || n.memory < p.Memory ||
			p.Devices > 0 && (n.free < p.Devices*p.Share || !p.MayUse(b.fleet.Nodes[i].Kind) || !n.fits(p)) {
			continue
		}
		free := 0.5*float64(n.cpu-p.CPU)/largestCPU + 0.5*float64(n.free-p.Devices*p.Share)/largestDevices
		switch score := int((1 - free) * 100); {
		case score > highest:
			highest, b.best = score, append(b.best[:0], i)
		case score == highest:
			b.best = append(b.best, i)
		}
	}
	if len(b.best) == 0 {
		return false
	}
	b.nodes[b.best[random.IntN(len(b.best))]].take(p)
	return true
}

func (n *exactNode) fits(p *demand.Pod) bool {
	found := 0
	for _, free := range n.devices {
		if free >= p.Share {
			found++
		}
	}
	return found >= p.Devices
}

// take gives a part to the device with the least room that fits, and whole devices to the first that are free.
func (n *exactNode) take(p *demand.Pod) {
	n.cpu, n.memory, n.free = n.cpu-p.CPU, n.memory-p.Memory, n.free-p.Devices*p.Share
	for range p.Devices {
		tightest := -1
		for i, free := range n.devices {
			if free >= p.Share && (tightest < 0 || free < n.devices[tightest]) {
				tightest = i
			}
		}
		n.devices[tightest] -= p.Share
	}
}
