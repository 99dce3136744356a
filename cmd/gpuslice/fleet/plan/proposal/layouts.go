package proposal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/policies/api"
)

// nodesOf are the nodes by model, number of devices and form.
func nodesOf(f *demand.Fleet, fam layout.Families, forms []layout.Form) []Nodes {
	index, all := map[string]int{}, []Nodes{}
	for i, form := range forms {
		k := &f.Kinds[f.Nodes[i].Kind]
		if k.Devices == 0 {
			continue
		}
		n := Nodes{Model: k.Model, Strategy: form.Strategy, Changed: !form.SameAs(k)}
		if form.Replicas > 1 {
			n.Replicas = form.Replicas
		}
		for _, counts := range form.Instances {
			n.Profiles = append(n.Profiles, fam.Names(k, counts))
		}
		n.Changed = n.Changed || len(n.Profiles) > 0 && !offers(k, n.Profiles)
		key := fmt.Sprint(n.Model, "\x00", n.Strategy, n.Replicas, n.Profiles, n.Changed, k.Devices)
		at, known := index[key]
		if !known {
			at = len(all)
			index[key] = at
			all = append(all, n)
		}
		all[at].Devices += k.Devices
		all[at].Names = append(all[at].Names, f.Nodes[i].Name)
	}
	slices.SortStableFunc(all, func(a, b Nodes) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Replicas, b.Replicas), cmp.Compare(b.Devices, a.Devices))
	})
	return all
}

// offers reports whether nodes of the kind have at least these MIG instances today, and the other devices whole.
func offers(k *demand.Kind, profiles []map[string]int) bool {
	needed := map[string]int64{api.ResourceGPU: int64(k.Devices - len(profiles))}
	for _, device := range profiles {
		for profile, n := range device {
			needed[nvidia.MIGPrefix+profile] += int64(n)
		}
	}
	for name, n := range needed {
		if k.Offers[name] < n {
			return false
		}
	}
	return true
}

// layoutsOf are the forms of devices that pods need, whole ones first.
func layoutsOf(f *demand.Fleet, fam layout.Families, packing *layout.Packing, forms []layout.Form) []Layout {
	index, all := map[string]int{}, []Layout{}
	of := func(l Layout) *Layout {
		key := fmt.Sprint(l.Strategy, l.Replicas, l.Profiles)
		at, known := index[key]
		if !known {
			at = len(all)
			index[key] = at
			all = append(all, l)
		}
		return &all[at]
	}
	whole := of(Layout{Strategy: layout.Exclusive})
	whole.Devices = packing.Devices() - len(packing.Shared)
	for i, at := range packing.Of {
		if at == layout.None && f.Pods[i].Devices > 0 {
			whole.Pods++
		}
	}
	named := func(strategy api.StrategyName, replicas int, k *demand.Kind, counts []int) Layout {
		l := Layout{Strategy: strategy}
		switch {
		case strategy == layout.MIG:
			l.Profiles = fam.Names(k, counts)
		case replicas > 1:
			l.Replicas = replicas
		}
		return l
	}
	for i := range packing.Shared {
		d := &packing.Shared[i]
		l := of(named(d.Strategy, d.Replicas, &f.Kinds[d.Kind], d.Instances))
		l.Devices++
		l.Pods += len(d.Pods)
	}
	for i, form := range forms {
		k := &f.Kinds[f.Nodes[i].Kind]
		if len(form.Instances) > 0 {
			for at, counts := range form.Instances {
				l := of(named(form.Strategy, 0, k, counts))
				l.NodeDevices++
				if !slices.ContainsFunc(form.Instances[:at], func(before []int) bool { return slices.Equal(before, counts) }) {
					l.Nodes++
				}
			}
			of(Layout{Strategy: layout.Exclusive}).NodeDevices += k.Devices - len(form.Instances)
			continue
		}
		l := of(named(form.Strategy, form.Replicas, k, nil))
		l.NodeDevices += k.Devices
		if k.Devices > 0 {
			l.Nodes++
		}
	}
	slices.SortStableFunc(all, func(a, b Layout) int {
		return cmp.Or(cmp.Compare(a.Strategy, b.Strategy), cmp.Compare(a.Replicas, b.Replicas), cmp.Compare(b.Devices, a.Devices))
	})
	return all
}

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
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Strategy, b.Strategy),
			cmp.Compare(a.Replicas, b.Replicas), cmp.Compare(a.Devices, b.Devices))
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
