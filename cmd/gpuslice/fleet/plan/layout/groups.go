package layout

import (
	"cmp"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/policies/api"
)

// group are pods that need the same form on the same kinds of node.
type group struct {
	form    Form
	allowed []bool // nil: all
	members []int
	cpu     int64 // of all
	memory  int64
}

// groups are those of pods with replicas and claims, the most constrained first.
func (a *assigner) groups() []group {
	type key struct {
		strategy api.StrategyName
		replicas int
		allowed  *bool
	}
	index, all := map[key]int{}, []group{}
	for i, d := range a.packing.Of {
		if d < 0 {
			continue
		}
		device, p, allowed := &a.packing.Shared[d], &a.fleet.Pods[i], a.allowed(i)
		if device.Strategy == MIG || device.Strategy == Exclusive {
			continue
		}
		k := key{strategy: device.Strategy, replicas: device.Replicas}
		if len(allowed) > 0 {
			k.allowed = &allowed[0]
		}
		at, known := index[k]
		if !known {
			at = len(all)
			index[k] = at
			all = append(all, group{form: Form{Strategy: device.Strategy, Replicas: device.Replicas}, allowed: allowed})
		}
		g := &all[at]
		g.members, g.cpu, g.memory = append(g.members, i), g.cpu+p.CPU, g.memory+p.Memory
	}
	slices.SortStableFunc(all, func(x, y group) int {
		return cmp.Or(cmp.Compare(x.breadth(), y.breadth()), cmp.Compare(y.form.Replicas, x.form.Replicas))
	})
	return all
}

func (g *group) breadth() (kinds int) {
	if g.allowed == nil {
		return 1 << 30
	}
	for _, ok := range g.allowed {
		if ok {
			kinds++
		}
	}
	return kinds
}

// holds is about how many pods of the group a node of a kind holds.
func (g *group) holds(k *demand.Kind) int {
	n := int64(g.form.Replicas * k.Devices)
	if g.form.Strategy == Claim {
		n = int64(2 * k.Devices)
	}
	if g.cpu > 0 {
		n = min(n, k.CPU*int64(len(g.members))/g.cpu)
	}
	if g.memory > 0 {
		n = min(n, k.Memory*int64(len(g.members))/g.memory)
	}
	if k.Pods != 0 {
		n = min(n, max(k.Pods, 0))
	}
	return int(n)
}

// changes is 0 where a node of the kind has the group's form today, else 1.
func (g *group) changes(k *demand.Kind) int {
	if g.form.SameAs(k) {
		return 0
	}
	return 1
}

// fill counts the group's pods on nodes that have its form for other groups, and returns how many are left.
func (a *assigner) fill(g *group) int {
	left := len(g.members)
	for i, n := range a.fleet.Nodes {
		if a.forms[i].Strategy == g.form.Strategy && a.forms[i].Replicas == g.form.Replicas && (g.allowed == nil || g.allowed[n.Kind]) {
			used := min(left, a.places[i], g.holds(&a.fleet.Kinds[n.Kind]))
			left, a.places[i] = left-used, a.places[i]-used
		}
	}
	return left
}

// cover turns whole nodes into those of a group's form until they hold so many pods, and reports whether it turned any. Kinds whose CPU and
// memory suffice for all of their replicas come first, of these those that fewer pods with whole devices want, and small nodes.
func (a *assigner) cover(g *group, pods int) (turned bool) {
	want := a.wanted()
	kinds := slices.DeleteFunc(a.fleet.Used(), func(kind int) bool {
		return g.allowed != nil && !g.allowed[kind] || g.holds(&a.fleet.Kinds[kind]) < 1
	})
	slices.SortStableFunc(kinds, func(x, y int) int {
		k, l := &a.fleet.Kinds[x], &a.fleet.Kinds[y]
		stranded := func(k *demand.Kind) int { return 10 - 10*g.holds(k)/(max(g.form.Replicas, 2)*k.Devices) }
		return cmp.Or(cmp.Compare(stranded(k), stranded(l)), cmp.Compare(g.changes(k), g.changes(l)), cmp.Compare(want[x], want[y]),
			cmp.Compare(k.Devices, l.Devices))
	})
	for _, kind := range kinds {
		for i, n := range a.fleet.Nodes {
			if pods <= 0 {
				return turned
			}
			if n.Kind == kind && a.forms[i].Strategy == Exclusive {
				a.forms[i], turned = g.form, true
				holds := g.holds(&a.fleet.Kinds[kind])
				a.places[i] = max(holds-pods, 0)
				pods -= holds
			}
		}
	}
	return turned
}

// wanted is, by kind, the part of its devices, in tenths, that pods with whole devices want if they go to kinds in
// proportion.
func (a *assigner) wanted() []int {
	devices := make([]float64, len(a.fleet.Kinds))
	for _, n := range a.fleet.Nodes {
		devices[n.Kind] += float64(a.fleet.Kinds[n.Kind].Devices)
	}
	sums := make([]float64, len(devices))
	for i, d := range a.packing.Of {
		p := &a.fleet.Pods[i]
		if d != None || p.Devices == 0 || p.Allowed == nil {
			continue
		}
		there := 0.0
		for kind, n := range devices {
			if p.Allowed[kind] {
				there += n
			}
		}
		for kind := range devices {
			if p.Allowed[kind] && there > 0 {
				sums[kind] += float64(p.Devices) / there
			}
		}
	}
	out := make([]int, len(sums))
	for i, sum := range sums {
		out[i] = int(10 * sum)
	}
	return out
}
