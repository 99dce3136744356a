package layout

import (
	"cmp"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/placement"
	"github.com/gpuslice/gpuslice/policies/api"
)

// Form is how the devices of a node are divided.
type Form struct {
	Strategy  api.StrategyName
	Replicas  int     // of each device; 1: whole
	Instances [][]int // of MIG: by device and profile
}

// whole is the form of devices that are not divided.
var whole = Form{Strategy: Exclusive, Replicas: 1}

// SameAs reports whether nodes of the kind have the form today.
func (form *Form) SameAs(k *demand.Kind) bool {
	return form.Strategy == cmp.Or(k.Strategy, Exclusive) && (form.Strategy == MIG || max(form.Replicas, 1) == max(k.Replicas, 1))
}

// todayForms are the forms that nodes have.
func todayForms(f *demand.Fleet) (forms []Form) {
	for _, n := range f.Nodes {
		k := &f.Kinds[n.Kind]
		forms = append(forms, Form{Strategy: cmp.Or(k.Strategy, Exclusive), Replicas: max(k.Replicas, 1)})
	}
	return forms
}

// Assignment is a form for each node of a fleet, and where the scheduler places the pods then.
type Assignment struct {
	Forms   []Form           // by node
	Nodes   []placement.Node // their offers
	Pods    []placement.Pod  // their requests
	Placed  []int            // by pod: index of the node, or placement.Waits
	Waiting int              // pods that are placed nowhere
}

// keep has nodes whose devices no pod gets keep the form that they have.
func (a *Assignment) keep(f *demand.Fleet) {
	used, today := make([]bool, len(a.Nodes)), todayForms(f)
	for i, at := range a.Placed {
		if at >= 0 && f.Pods[i].Devices > 0 {
			used[at] = true
		}
	}
	for i := range a.Nodes {
		if !used[i] {
			a.Forms[i], a.Nodes[i].Extended, a.Nodes[i].Parts = today[i], f.Kinds[f.Nodes[i].Kind].Offers, nil
		}
	}
}

// Today places the pods by their requests on the nodes as they are: running pods stay on their nodes.
func Today(f *demand.Fleet) *Assignment {
	nodes, pods := make([]placement.Node, len(f.Nodes)), make([]placement.Pod, len(f.Pods))
	for i, n := range f.Nodes {
		nodes[i] = hostOf(f, n)
		nodes[i].Extended = f.Kinds[n.Kind].Offers
	}
	for i := range f.Pods {
		p := &f.Pods[i]
		pods[i] = placement.Pod{CPU: p.CPU, Memory: p.Memory, Allowed: p.Allowed, Extended: p.Requests, Node: p.Node}
		if p.Node == 0 && p.Devices > 0 && f.FitsNowhere(p) { // its request alone might fit
			pods[i].Extended = map[string]int64{nothing: 1}
		}
	}
	out := &Assignment{Forms: todayForms(f), Nodes: nodes, Pods: pods}
	out.place(f)
	return out
}

func hostOf(f *demand.Fleet, n demand.Node) placement.Node {
	k := &f.Kinds[n.Kind]
	return placement.Node{CPU: k.CPU, Memory: k.Memory, Pods: k.Pods, Kind: n.Kind}
}
