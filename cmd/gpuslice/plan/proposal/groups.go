package proposal

import (
	"cmp"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/plan/layout"
	"github.com/gpuslice/gpuslice/policies/api"
)

// Group is nodes of one model and layout, as an autoscaler adds and removes them.
type Group struct {
	Model    string           `json:"model"`
	Strategy api.StrategyName `json:"strategy"`
	Replicas int              `json:"replicas,omitempty"`
	Devices  int              `json:"devices"` // of each node
	Least    int              `json:"least"`   // nodes that the pods need at the quietest moment
	Most     int              `json:"most"`    // and at the peak
}

// Group counts nodes by groups: what the plan needs, and what the pods of another moment, the quietest, need by the same families.
func (p *Plan) Group(f, quiet *demand.Fleet) {
	most := nodesByGroup(f, p.packing)
	least := most
	if quiet != f {
		least = nodesByGroup(quiet, layout.Pack(quiet, p.families))
	}
	for group, n := range most {
		few := min(least[group], n)
		group.Least, group.Most = few, n
		p.Groups = append(p.Groups, group)
	}
	for group, n := range least {
		if most[group] == 0 { // the peak divides these GPUs otherwise
			group.Most = n
			p.Groups = append(p.Groups, group)
		}
	}
	slices.SortFunc(p.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Strategy, b.Strategy), cmp.Compare(a.Replicas, b.Replicas), cmp.Compare(a.Devices, b.Devices))
	})
}

// nodesByGroup are the nodes that a packing fills, each with devices of one form, by groups without numbers.
func nodesByGroup(f *demand.Fleet, packing *layout.Packing) map[Group]int {
	devices := map[Group]int{}
	add := func(kind int, strategy api.StrategyName, replicas, n int) {
		k := &f.Kinds[kind]
		key := Group{Model: k.Model, Strategy: strategy, Devices: k.Devices}
		if replicas > 1 {
			key.Replicas = replicas
		}
		devices[key] += n
	}
	for kind, n := range packing.Whole {
		if n > 0 {
			add(kind, layout.Exclusive, 1, n)
		}
	}
	for i := range packing.Shared {
		d := &packing.Shared[i]
		add(d.Kind, d.Strategy, d.Replicas, 1)
	}
	for key, n := range devices {
		devices[key] = (n + key.Devices - 1) / key.Devices
	}
	return devices
}
