package layout

import (
	"cmp"
	"math"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/policies/api"
)

// Packing is how few devices were found to hold the pods, as if there were enough nodes of each kind.
type Packing struct {
	Shared  []Device
	Whole   []int // whole devices by kind
	Nowhere []int // pods that fit on no kind of node
	Of      []int // by pod: index of its Device, None or Nowhere
}

// Devices is how many there are.
func (p *Packing) Devices() int {
	n := len(p.Shared)
	for _, whole := range p.Whole {
		n += whole
	}
	return n
}

// item is a pod that is packed.
type item struct {
	pod    int
	parts  []part
	weight float64 // the least of the parts, also of CPU and memory
}

// Pack packs pods that need parts into as few devices as it finds: each order of pods, those that take most first, into a device that
// is there, else into a new one.
func Pack(f *demand.Fleet, fam Families) *Packing {
	best := &Packing{Whole: make([]int, len(f.Kinds)), Of: make([]int, len(f.Pods))}
	items := fam.items(f, best)
	left := make([]int, len(f.Kinds))
	for _, n := range f.Nodes {
		left[n.Kind] += f.Kinds[n.Kind].Devices
	}
	for i := range f.Pods {
		if p := &f.Pods[i]; p.Devices > 0 && !p.Part() && best.Of[i] != Nowhere {
			kind := widest(f, p, left)
			best.Whole[kind] += p.Devices
			left[kind] -= p.Devices
		}
	}
	var found *packer
	for _, order := range orders() {
		slices.SortStableFunc(items, order)
		p := &packer{fleet: f, left: slices.Clone(left), open: make([][]int, len(f.Kinds))}
		for i := range items {
			p.add(&items[i])
		}
		if found == nil || len(p.devices) < len(found.devices) {
			found = p
		}
	}
	best.Shared = found.devices
	for d := range best.Shared {
		for _, pod := range best.Shared[d].Pods {
			best.Of[pod] = d
		}
	}
	return best
}

// Values of Packing.Of for pods that share no Device.
const (
	None    = -1 // they need whole devices, or no device
	Nowhere = -2 // they fit on no kind of node
)

// maxKinds is the number of kinds above which pods are packed on the largest kinds alone: the cost grows with kinds times pods.
const maxKinds = 64

func (fam *Families) items(f *demand.Fleet, out *Packing) (items []item) {
	cache, kinds := map[class][]part{}, f.Used()
	if len(kinds) > maxKinds && !fam.MIG { // nodes get the instances of their own kind
		kinds = largest(f)
	}
	for i := range f.Pods {
		p := &f.Pods[i]
		out.Of[i] = None
		if p.Devices == 0 {
			continue
		}
		if f.FitsNowhere(p) {
			out.Of[i] = Nowhere
			out.Nowhere = append(out.Nowhere, i)
			continue
		}
		if !p.Part() {
			continue
		}
		c := classOf(p)
		parts, known := cache[c]
		if !known {
			parts = fam.parts(f, p, kinds)
			for j := range parts {
				k := &f.Kinds[parts[j].kind]
				parts[j].weight = max(parts[j].weight, ratio(p.CPU, k.CPU), ratio(p.Memory, k.Memory))
			}
			slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.weight, b.weight) })
			cache[c] = parts
		}
		items = append(items, item{pod: i, parts: parts, weight: parts[0].weight})
	}
	return items
}

// class holds the common properties of pods, for a plan.
type class struct {
	share              int
	deviceMemory       int64
	cpu, memory        int64
	isolated, anywhere bool
	allowed            *bool // the first of the shared fields
}

func classOf(p *demand.Pod) class {
	c := class{share: p.Share, deviceMemory: p.DeviceMemory, cpu: p.CPU, memory: p.Memory, isolated: p.Isolated, anywhere: len(p.Allowed) == 0}
	if !c.anywhere {
		c.allowed = &p.Allowed[0]
	}
	return c
}

func ratio(part, whole int64) float64 {
	if part == 0 {
		return 0
	}
	return float64(part) / float64(max(whole, 1))
}

// orders are the orders in which pods are packed.
func orders() []func(a, b item) int {
	heaviest := func(a, b item) int { return cmp.Compare(b.weight, a.weight) }
	return []func(a, b item) int{
		heaviest,
		func(a, b item) int { return cmp.Or(cmp.Compare(len(a.parts), len(b.parts)), heaviest(a, b)) },
		func(a, b item) int { return cmp.Or(heaviest(a, b), cmp.Compare(len(a.parts), len(b.parts))) },
	}
}

// widest is the kind that fits and has most devices left.
func widest(f *demand.Fleet, p *demand.Pod, left []int) int {
	best := -1
	for kind := range f.Kinds {
		if f.Fits(p, kind) && (best < 0 || left[kind] > left[best]) {
			best = kind
		}
	}
	return best
}

type packer struct {
	fleet   *demand.Fleet
	devices []Device
	open    [][]int // indices of devices that are not full, by kind
	left    []int
}

// add gives a pod the tightest place of the devices that are open, else a new device of the form that takes least of it.
func (p *packer) add(it *item) {
	pod := &p.fleet.Pods[it.pod]
	at, least := -1, math.Inf(1)
	var chosen *part
	for i := range it.parts {
		w := &it.parts[i]
		if w.strategy == Exclusive {
			continue // its first pod fills such a device: none is open
		}
		for _, d := range p.open[w.kind] {
			if device := &p.devices[d]; device.takes(pod, w) {
				if left := device.Free() - w.weight; left < least {
					at, least, chosen = d, left, w
				}
			}
		}
	}
	if at < 0 {
		at, chosen = p.newDevice(it)
	}
	device := &p.devices[at]
	device.take(pod, chosen)
	device.Pods = append(device.Pods, it.pod)
	if kind := device.Kind; device.Free() <= 0 {
		p.open[kind] = slices.DeleteFunc(p.open[kind], func(d int) bool { return d == at })
	}
}

func (p *packer) newDevice(it *item) (int, *part) {
	chosen := &it.parts[0]
	for i := range it.parts {
		w := &it.parts[i]
		if w.weight > it.weight {
			break
		}
		if p.roomier(w.kind, chosen.kind) {
			chosen = w
		}
	}
	k := &p.fleet.Kinds[chosen.kind]
	d := Device{Kind: chosen.kind, Strategy: chosen.strategy, Replicas: chosen.replicas,
		geometry: chosen.geometry, cpu: k.CPU, memory: k.Memory, left: demand.Whole}
	if d.geometry != nil {
		d.Instances = make([]int, len(d.geometry.Profiles))
	}
	p.left[chosen.kind]--
	p.devices = append(p.devices, d)
	p.open[d.Kind] = append(p.open[d.Kind], len(p.devices)-1)
	return len(p.devices) - 1, chosen
}

// roomier reports whether a device of a node of kind a limits those that share it less than one of kind b: devices are left of it, and
// its nodes have more CPU and memory.
func (p *packer) roomier(a, b int) bool {
	if (p.left[a] > 0) != (p.left[b] > 0) {
		return p.left[a] > 0
	}
	k, other := &p.fleet.Kinds[a], &p.fleet.Kinds[b]
	return cmp.Or(cmp.Compare(k.CPU, other.CPU), cmp.Compare(k.Memory, other.Memory)) > 0
}

// Device is a device with the pods that share it, all on a node of one kind.
type Device struct {
	Kind      int
	Strategy  api.StrategyName
	Replicas  int   // of equal replicas; 1: whole
	Instances []int // of MIG, by profile
	Pods      []int // indices

	geometry    *Geometry
	left        int // thousandths that claims leave
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
		return w.share <= d.left
	}
	return w.replicas >= d.Replicas && len(d.Pods) < d.Replicas
}

func (d *Device) take(p *demand.Pod, w *part) {
	d.cpu, d.memory = d.cpu-p.CPU, d.memory-p.Memory
	switch d.Strategy {
	case MIG:
		d.Instances[w.profile]++
	case Claim:
		d.left -= w.share
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
		return float64(d.left) / demand.Whole
	}
	return float64(d.Replicas-len(d.Pods)) / float64(d.Replicas)
}
