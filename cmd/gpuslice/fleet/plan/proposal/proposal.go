// Package proposal makes a plan of a fleet: how many devices its pods need, today and with the layout found, which nodes get which
// layout, and which pods wait.
//
//	demand.Fleet -> devices needed (layout.Pack, layout.Bound) -> nodes (layout.Assign) -> Plan
package proposal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
)

// Make makes a plan with the families given. The same fleet has the same plan.
func Make(f *demand.Fleet, fam layout.Families) *Plan {
	before, bound := layout.Today(f), layout.Bound(f, fam)
	packing := layout.Pack(f, fam)
	after, notes := layout.Assign(f, fam, packing), []string{}
	if after.Waiting > before.Waiting {
		if one, coarse, there := coarser(f, fam, before.Waiting); coarse != nil {
			notes = append(notes, fmt.Sprintf("a layout with %d GPUs was found, but %d pods would wait with it on the nodes that are there: this one divides every shared GPU into the same number of replicas",
				packing.Devices(), after.Waiting))
			fam, packing, after = one, coarse, there
		}
	}
	p := &Plan{Notes: notes, Groups: []Group{}, packing: packing, families: fam}
	if fam.MIG && !layout.AnyGeometry(f, fam) {
		p.Notes = append(p.Notes,
			"no MIG instances are proposed: no node has GPUs that MIG is known to divide, or their model or memory is unknown")
	}
	p.Devices = Devices{Total: f.Devices(), Planned: packing.Devices(), LowerBound: bound}
	p.Models = modelsOf(f, packing)
	for _, m := range p.Models {
		p.Devices.Today += m.Today
	}
	p.Devices.Freed = p.Devices.Today - p.Devices.Planned
	if p.Devices.LowerBound > 0 {
		p.Devices.GapRatio = float64(p.Devices.Planned-p.Devices.LowerBound) / float64(p.Devices.LowerBound)
	}
	if p.Applied = after.Waiting <= before.Waiting; !p.Applied {
		p.Notes = append(p.Notes, fmt.Sprintf(
			"with the layout found %d pods would wait on the nodes that are there, more than today: the nodes keep their layout", after.Waiting))
		after = before
	}
	p.Waiting, p.Now, p.Next = Waiting{before.Waiting, after.Waiting}, before, after
	p.Demand, p.Waste = demandOf(f, packing), wasteOf(f, packing, p.Devices)
	p.Nodes = nodesOf(f, fam, after.Forms)
	p.Layouts = layoutsOf(f, fam, packing, after.Forms)
	p.Comparison = compare(f, fam, packing)
	p.Unplaced = unplaced(f, packing)
	return p
}

// coarser is the best layout with one number of replicas with which no more than so many pods wait, if it needs fewer devices than today's:
// a few nodes cannot have a form for each size of pods. nil: there is none.
func coarser(f *demand.Fleet, fam layout.Families, waiting int) (families layout.Families, best *layout.Packing, there *layout.Assignment) {
	least := 0
	for _, n := range f.Today() {
		least += n
	}
	for _, n := range fam.Replicas {
		one := fam
		one.Only(n)
		packing := layout.Pack(f, one)
		if packing.Devices() >= least {
			continue
		}
		if a := layout.Assign(f, one, packing); a.Waiting <= waiting {
			families, best, there, least = one, packing, a, packing.Devices()
		}
	}
	return families, best, there
}

// modelsOf are the devices by model. Those that pods of any model need today are of the models that there are, in proportion.
func modelsOf(f *demand.Fleet, packing *layout.Packing) map[string]*Model {
	out, total := map[string]*Model{}, f.Devices()
	of := func(model string) *Model {
		if out[model] == nil {
			out[model] = &Model{}
		}
		return out[model]
	}
	for _, kind := range f.Used() {
		k := &f.Kinds[kind]
		m := of(k.Model)
		m.Total, m.Planned = m.Total+k.Nodes*k.Devices, m.Planned+packing.Whole[kind]
	}
	for i := range packing.Shared {
		of(f.Kinds[packing.Shared[i].Kind].Model).Planned++
	}
	for model, n := range f.Today() {
		if model != "" || total == 0 {
			of(model).Today += n
			continue
		}
		left := n
		for _, name := range slices.Sorted(maps.Keys(out)) {
			part := min(left, (n*out[name].Total+total-1)/total)
			left -= part
			out[name].Today += part
		}
	}
	return out
}

func demandOf(f *demand.Fleet, packing *layout.Packing) Demand {
	d := Demand{Pods: len(f.Pods)}
	thousandths := 0
	for i := range f.Pods {
		p := &f.Pods[i]
		if p.Part() {
			d.Parts++
		}
		switch at := packing.Of[i]; {
		case at >= 0:
			thousandths += min(p.ShareOf(&f.Kinds[packing.Shared[at].Kind]), demand.Whole)
		case at == layout.None:
			thousandths += p.Devices * demand.Whole
		}
	}
	d.Devices = float64(thousandths) / demand.Whole
	d.Rounded = float64(packing.Devices()*demand.Whole-thousandths) / demand.Whole
	return d
}

// compare returns the needs of layouts that people choose by hand, beside the families of the plan and exact parts.
func compare(f *demand.Fleet, fam layout.Families, packing *layout.Packing) []Comparison {
	out, whole := []Comparison{}, packing.Devices()-len(packing.Shared)
	add := func(name string, families layout.Families) {
		c := Comparison{Layout: name, Devices: layout.Pack(f, families).Devices(), LowerBound: layout.Bound(f, families)}
		c.Parts = c.Devices - whole
		out = append(out, c)
	}
	add("whole devices", layout.Families{})
	shared := cmp.Or(fam.Shared, layout.TimeSlicing)
	for _, replicas := range []int{8, 4, 2} {
		add(fmt.Sprintf("%d replicas, the rest whole", replicas),
			layout.Families{Replicas: []int{replicas}, Shared: shared, Reserve: fam.Reserve})
	}
	add("equal replicas, mixed by node", layout.Families{Replicas: layout.AllReplicas(), Shared: shared, Reserve: fam.Reserve})
	migs := layout.Families{MIG: true, Geometry: fam.Geometry}
	if layout.AnyGeometry(f, migs) {
		add("MIG instances", migs)
	}
	add("exact parts", layout.Families{Claims: true})
	return out
}

// maxUnplaced bounds how many pods a plan names one by one.
const maxUnplaced = 100

func unplaced(f *demand.Fleet, packing *layout.Packing) []Unplaced {
	out := []Unplaced{}
	for _, i := range packing.Nowhere[:min(len(packing.Nowhere), maxUnplaced)] {
		p := &f.Pods[i]
		out = append(out, Unplaced{p.Namespace, p.Name, f.Reason(p)})
	}
	return out
}
