package layout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/placement"
	"github.com/gpuslice/gpuslice/policies/api"
)

// maxTrials bounds how often pods are placed in search of a better assignment.
const maxTrials = 24

// Assign gives the nodes of the fleet forms by which as few pods wait as it finds: starting from the packing's needs,
// the numbers of nodes are changed as long as fewer pods wait. It is the fleet as it is, with the CPU and the memory of
// its nodes.
func Assign(f *demand.Fleet, fam Families, packing *Packing) *Assignment {
	a := &assigner{fleet: f, families: fam, packing: packing, forms: make([]Form, len(f.Nodes)),
		places: make([]int, len(f.Nodes)), sets: map[string][]bool{}, sufficing: map[need][]bool{}}
	for i := range a.forms {
		a.forms[i] = whole
	}
	a.instances()
	groups := a.groups()
	for i := range groups {
		a.cover(&groups[i], a.fill(&groups[i]))
	}
	best := a.place()
	for range maxTrials {
		next := a.improve(groups, best)
		if next == nil {
			break
		}
		best = next
	}
	best.keep(f)
	return best
}

// place places the pods in the order of their priorities, those that run before others.
func (a *Assignment) place(f *demand.Fleet) {
	order := make([]int, len(a.Pods))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(f.Pods[j].Priority, f.Pods[i].Priority), cmp.Compare(min(f.Pods[j].Node, 1), min(f.Pods[i].Node, 1)))
	})
	sorted := make([]placement.Pod, len(order))
	for at, i := range order {
		sorted[at] = a.Pods[i]
	}
	a.Placed = make([]int, len(order))
	for at, node := range placement.Stock(a.Nodes, sorted) {
		a.Placed[order[at]] = node
		if node == placement.Waits {
			a.Waiting++
		}
	}
}

type assigner struct {
	fleet    *demand.Fleet
	families Families
	packing  *Packing
	forms    []Form
	places   []int // for about how many pods more of a group's form nodes have

	sets      map[string][]bool // kinds, by themselves
	sufficing map[need][]bool
}

// need holds the properties of a pod that decide on which kinds of node a form suffices for it.
type need struct {
	class
	strategy       api.StrategyName
	replicas, most int
}

// allowed are the kinds that a pod may use, and on which the form that it is packed in has the memory that it needs. Equal ones are shared.
func (a *assigner) allowed(pod int) []bool {
	p := &a.fleet.Pods[pod]
	if p.DeviceMemory == 0 {
		return p.Allowed
	}
	n := need{class: classOf(p), strategy: Exclusive, most: demand.Whole}
	if d := a.packing.Of[pod]; d >= 0 {
		device := &a.packing.Shared[d]
		n.strategy, n.replicas = device.Strategy, device.Replicas
		if device.Strategy == Claim {
			n.most = p.ShareOf(&a.fleet.Kinds[device.Kind])
		}
	}
	if known, ok := a.sufficing[n]; ok {
		return known
	}
	set, text := make([]bool, len(a.fleet.Kinds)), []byte{}
	for kind := range set {
		k := &a.fleet.Kinds[kind]
		set[kind] = p.MayUse(kind) && (n.strategy == MIG || p.ShareOf(k) <= n.most) &&
			(n.replicas < 2 || n.strategy == MIG || a.families.suffices(p, k, n.replicas))
		text = strconv.AppendBool(text, set[kind])
	}
	if known, ok := a.sets[string(text)]; ok {
		set = known
	}
	a.sets[string(text)], a.sufficing[n] = set, set
	return set
}

// instances gives nodes the MIG geometries of the packing, equal ones side by side.
func (a *assigner) instances() {
	byKind := map[int][][]int{}
	for i := range a.packing.Shared {
		if d := &a.packing.Shared[i]; d.Strategy == MIG {
			byKind[d.Kind] = append(byKind[d.Kind], d.Instances)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		left := byKind[kind]
		slices.SortStableFunc(left, func(x, y []int) int { return slices.Compare(y, x) })
		for i, n := range a.fleet.Nodes {
			if n.Kind != kind || len(left) == 0 {
				continue
			}
			count := min(a.fleet.Kinds[kind].Devices, len(left))
			a.forms[i] = Form{Strategy: MIG, Instances: left[:count]}
			left = left[count:]
		}
	}
}

// place has the scheduler place all pods on the nodes as they are formed.
func (a *assigner) place() *Assignment {
	out := &Assignment{Forms: slices.Clone(a.forms), Nodes: make([]placement.Node, len(a.fleet.Nodes)),
		Pods: make([]placement.Pod, len(a.fleet.Pods))}
	for i, n := range a.fleet.Nodes {
		out.Nodes[i] = hostOf(a.fleet, n)
		a.form(&out.Nodes[i], &a.forms[i], &a.fleet.Kinds[n.Kind])
	}
	for i := range a.fleet.Pods {
		p := &a.fleet.Pods[i]
		out.Pods[i] = placement.Pod{CPU: p.CPU, Memory: p.Memory, Allowed: a.allowed(i)}
		a.request(&out.Pods[i], i)
	}
	out.place(a.fleet)
	return out
}

// The names of the nodes' resources in the simulation.
const (
	wholeDevice = "whole"
	nothing     = "nothing" // that no node has
)

func (a *assigner) form(n *placement.Node, form *Form, k *demand.Kind) {
	devices := int64(k.Devices)
	n.Extended = map[string]int64{}
	switch form.Strategy {
	case MIG:
		g := a.families.geometry(k)
		for _, counts := range form.Instances {
			for profile, count := range counts {
				n.Extended[g.Profiles[profile].Name] += int64(count)
			}
		}
		n.Extended[wholeDevice] = devices - int64(len(form.Instances))
	case Claim:
		n.Parts = slices.Repeat([]int64{demand.Whole}, k.Devices)
	case Exclusive:
		n.Extended[wholeDevice] = devices
	default:
		n.Extended[replicaName(form.Replicas)] = devices * int64(form.Replicas)
	}
}

func replicaName(replicas int) string { return fmt.Sprintf("1/%d", replicas) }

func (a *assigner) request(out *placement.Pod, pod int) {
	p := &a.fleet.Pods[pod]
	d := a.packing.Of[pod]
	switch {
	case p.Devices == 0:
	case d == Nowhere:
		out.Extended = map[string]int64{nothing: 1}
	case d == None:
		out.Extended = map[string]int64{wholeDevice: int64(p.Devices)}
	default:
		device := &a.packing.Shared[d]
		switch device.Strategy {
		case MIG:
			out.Extended = map[string]int64{device.geometry.Profiles[device.geometry.smallest(p.DeviceMemory, p.Share)].Name: 1}
		case Claim:
			out.Part = int64(p.ShareOf(&a.fleet.Kinds[device.Kind]))
		case Exclusive:
			out.Extended = map[string]int64{wholeDevice: 1}
		default:
			out.Extended = map[string]int64{replicaName(device.Replicas): 1}
		}
	}
}

// improve changes the number of nodes of the group with most pods that wait, or gives nodes of forms that are not full back to whole
// devices; nil: neither has fewer pods wait.
func (a *assigner) improve(groups []group, best *Assignment) *Assignment {
	order := make([]int, len(groups))
	waiting := make([]int, len(groups))
	for i := range groups {
		order[i] = i
		for _, pod := range groups[i].members {
			if best.Placed[pod] == placement.Waits {
				waiting[i]++
			}
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(waiting[y], waiting[x]) })
	for _, i := range order {
		if waiting[i] == 0 {
			break
		}
		forms := slices.Clone(a.forms)
		if a.cover(&groups[i], waiting[i]) {
			if next := a.place(); next.Waiting < best.Waiting {
				return next
			}
		}
		a.forms = forms
	}
	return a.giveBack(best)
}

// giveBack makes nodes whole that no pod is on, if pods wait for whole devices.
func (a *assigner) giveBack(best *Assignment) *Assignment {
	used := make([]bool, len(a.forms))
	for pod, node := range best.Placed {
		if node >= 0 && a.fleet.Pods[pod].Part() {
			used[node] = true
		}
	}
	changed := false
	for i := range a.forms {
		if a.forms[i].Strategy != Exclusive && !used[i] {
			a.forms[i], changed = whole, true
		}
	}
	if !changed {
		return nil
	}
	if next := a.place(); next.Waiting < best.Waiting {
		return next
	}
	a.forms = slices.Clone(best.Forms)
	return nil
}
