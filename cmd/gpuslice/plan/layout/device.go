package layout

import (
	"github.com/gpuslice/gpuslice/cmd/gpuslice/plan/demand"
	"github.com/gpuslice/gpuslice/policies/api"
)

// Device is a device with the pods that share it, all on a node of one kind.
type Device struct {
	Kind      int
	Strategy  api.StrategyName
	Replicas  int   // of equal replicas; 1: whole
	Instances []int // of MIG, by profile
	Pods      []int // indices

	geometry    *Geometry
	room        int // thousandths that claims leave
	cpu, memory int64
}

// takes reports whether a pod fits beside those of the device.
func (d *Device) takes(p *demand.Pod, w *part) bool {
	if w.kind != d.Kind || w.strategy != d.Strategy || p.CPU > d.cpu || p.Memory > d.memory {
		return false
	}
	switch d.Strategy {
	case MIG:
		d.Instances[w.profile]++
		legal := d.geometry.Legal(d.Instances)
		d.Instances[w.profile]--
		return legal
	case Claim:
		return w.share <= d.room
	}
	return w.replicas >= d.Replicas && len(d.Pods) < d.Replicas
}

func (d *Device) take(p *demand.Pod, w *part) {
	d.cpu, d.memory = d.cpu-p.CPU, d.memory-p.Memory
	switch d.Strategy {
	case MIG:
		d.Instances[w.profile]++
	case Claim:
		d.room -= w.share
	}
}

// Free is the part of a device that no pod has.
func (d *Device) Free() float64 {
	switch d.Strategy {
	case MIG:
		used := 0
		for i, n := range d.Instances {
			used += n * d.geometry.Profiles[i].Size
		}
		return 1 - float64(used)/float64(d.geometry.Slices)
	case Claim:
		return float64(d.room) / demand.Whole
	}
	return float64(d.Replicas-len(d.Pods)) / float64(d.Replicas)
}
