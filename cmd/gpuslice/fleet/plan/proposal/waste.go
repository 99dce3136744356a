package proposal

import (
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/sizing"
)

// Waste is the part of the needed devices that does nothing, by cause, in devices.
type Waste struct {
	Today   Lost `json:"today"`
	Planned Lost `json:"planned"`
	// Idle is held today by pods that were measured and never used more than a CUDA context; HardlyUsed are whole devices held today by
	// other pods that used less than half of their memory, and less than a fifth of their multiprocessors, at their peak.
	Idle       float64 `json:"idle"`
	HardlyUsed float64 `json:"hardlyUsed"`
	Unmeasured float64 `json:"unmeasured"` // held by pods of which nothing was measured
}

// Lost is the loss of a layout.
type Lost struct {
	Rounding    float64 `json:"rounding"`    // pods hold more than they need, as replicas and instances come in sizes
	Stranded    float64 `json:"stranded"`    // free parts of devices that have a pod
	StrandedGiB float64 `json:"strandedGiB"` // their memory, where it is known
}

// What HardlyUsed is below, as parts of a whole device.
const (
	hardlyMemory   = 0.5
	hardlyUtilized = 0.2
)

func wasteOf(f *demand.Fleet, packing *layout.Packing, d Devices) (w Waste) {
	for _, used := range packing.Shared {
		k, free := &f.Kinds[used.Kind], used.Free()
		w.Planned.Stranded += free
		w.Planned.StrandedGiB += free * float64(k.DeviceMemory) / 1024
		taken := 1 - free
		for _, pod := range used.Pods {
			taken -= needOf(&f.Pods[pod], k)
		}
		w.Planned.Rounding += max(taken, 0)
	}
	held, memory := 0.0, 0.0 // memory: GiB that are held, where that is known
	for i := range f.Pods {
		p := &f.Pods[i]
		if p.Devices == 0 || p.Pool == "" || packing.Of[i] == layout.Nowhere {
			continue
		}
		holds := float64(p.Units) / float64(max(f.Units[p.Pool], 1))
		k := kindOf(f, packing, i)
		held += holds
		memory += holds * float64(k.DeviceMemory) / 1024
		w.Today.Rounding += max(holds-needOf(p, k), 0)
		if p.Node > 0 {
			w.count(p, k, holds, f.Units[p.Pool] == 1)
		}
	}
	w.Today.Stranded = max(float64(d.Today)-held, 0)
	if held > 0 {
		w.Today.StrandedGiB = w.Today.Stranded * memory / held
	}
	return w
}

// count counts what a pod that runs does with what it holds.
func (w *Waste) count(p *demand.Pod, k *demand.Kind, holds float64, whole bool) {
	switch u := p.Use; {
	case u == nil:
		w.Unmeasured += holds
	case u.Peak <= sizing.DriverContext:
		w.Idle += holds
	case whole && u.Utilized != nil && *u.Utilized < hardlyUtilized*holds &&
		k.DeviceMemory > 0 && float64(u.Peak) < hardlyMemory*holds*float64(k.DeviceMemory):
		w.HardlyUsed += holds
	}
}

// kindOf is the kind of node on which a pod runs, or for which it is planned.
func kindOf(f *demand.Fleet, packing *layout.Packing, pod int) *demand.Kind {
	if node := f.Pods[pod].Node; node > 0 {
		return &f.Kinds[f.Nodes[node-1].Kind]
	}
	if at := packing.Of[pod]; at >= 0 {
		return &f.Kinds[packing.Shared[at].Kind]
	}
	return &demand.Kind{}
}

// needOf is the need of a pod in devices of a kind.
func needOf(p *demand.Pod, k *demand.Kind) float64 {
	return float64(p.Devices*min(p.ShareOf(k), demand.Whole)) / demand.Whole
}
