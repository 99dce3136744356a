package pools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// Labels of GPU feature discovery with the number of parts of one device. A number for several devices is a sum, and
// two of them could then meet a request for several parts.
const (
	labelCount    = api.ResourceGPU + ".count"
	labelReplicas = api.ResourceGPU + ".replicas"
)

// declaredFor reports whether spec declares a pool of the resource for nodes with these labels.
func declaredFor(spec config.PoolsSpec, labels map[string]string, resource string) bool {
	return slices.ContainsFunc(spec.Declared, func(d config.PoolSpec) bool {
		return d.Resource == resource && selects(&d, labels)
	})
}

// selects reports whether nodes with these labels are the pool's.
func selects(d *config.PoolSpec, labels map[string]string) bool {
	for key, value := range d.Selector {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return len(d.Selector) > 0
}

// declaredPools makes the pools that spec declares, in its order. A node belongs to the first that selects it for a
// resource. Fields that a declaration leaves open (memory, replicas, driver) have the value that all its nodes' labels
// agree on, or the last known one.
func declaredPools(nodes []*corev1.Node, byClass classOffers, spec config.PoolsSpec, remembered []Pool) []Pool {
	pools := make([]Pool, 0, len(spec.Declared))
	for i := range spec.Declared {
		d := &spec.Declared[i]
		g := &gathered{pool: declaredPool(d)}
		var offers []Pool
		matched := 0
		for _, node := range nodes {
			if !selects(d, node.Labels) || declaredFor(config.PoolsSpec{Declared: spec.Declared[:i]}, node.Labels, d.Resource) {
				continue
			}
			matched++
			if why := g.pool.LeavesOut(node); why != "" {
				if text := "a node is left out: " + why; !slices.Contains(g.pool.Notes, text) {
					g.pool.Notes = append(g.pool.Notes, text)
				}
				continue
			}
			// A plugin that restarts leaves the resource in place with 0: the node stays the pool's.
			if offer, offered := byClass.of(node, d.Resource); offered {
				g.nodes = append(g.nodes, node)
				if offer.Strategy != "" {
					offers = append(offers, offer) // of labels that contradict each other, none is believed
				}
			}
		}
		if matched > 0 && len(g.nodes) == 0 {
			g.note("%d nodes match the selector, and none of them offers %s", matched, d.Resource)
		}
		g.fillIn(offers)
		g.recall(remembered)
		p := g.finish(spec.Reserve)
		p.Labels, p.Taints = maps.Clone(d.Selector), slices.Clone(d.Taints)
		pools = append(pools, p)
	}
	return pools
}

// declaredPool is the pool of the declaration alone.
func declaredPool(d *config.PoolSpec) Pool {
	p := Pool{
		Name: d.Name, Resource: d.Resource, Strategy: d.Strategy, DeviceMemory: d.DeviceMemory,
		InstanceMemory: d.InstanceMemory, Replicas: d.Replicas, Granular: d.Granular, MIGProfile: d.MIGProfile, MPSProvider: d.MPSProvider,
		DriverLimits: d.DriverLimits, TrustDomain: d.TrustDomain, Declared: true, ScalesFromZero: d.ScalesFromZero,
	}
	if s := p.Sharing(); s.Unit != 0 && !s.Shared() {
		p.Replicas = 1
	}
	p.DriverMajor, p.DriverMinor = nvidia.DriverVersion(d.Driver)
	var site strings.Builder
	for _, key := range slices.Sorted(maps.Keys(d.Selector)) {
		value := d.Selector[key]
		fmt.Fprintf(&site, "%s=%s\n", key, value)
		p.Requirements = append(p.Requirements, corev1.NodeSelectorRequirement{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
		})
	}
	p.Site = shortHash(site.String())
	if d.Granular {
		requireGranular(&p, d)
	}
	return p
}

func (g *gathered) note(format string, args ...any) {
	g.pool.Notes = append(g.pool.Notes, fmt.Sprintf(format, args...))
}

// fillIn fills fields that the declaration leaves open from the nodes' labels, if they agree, and notes where they
// contradict it. The declaration wins.
func (g *gathered) fillIn(offers []Pool) {
	p := &g.pool
	agree(g, "device memory", &p.DeviceMemory, offers, func(o *Pool) quantity.MiB { return o.DeviceMemory })
	agree(g, "replicas", &p.Replicas, offers, func(o *Pool) int { return o.Replicas })
	agree(g, "product", &p.Product, offers, func(o *Pool) string { return o.Product })
	if p.MIGProfile != "" {
		agree(g, "instance memory", &p.InstanceMemory, offers, func(o *Pool) quantity.MiB { return o.InstanceMemory })
	}
	if p.DriverMajor != 0 {
		return
	}
	for i := range offers {
		if offers[i].DriverMajor == 0 { // one that is not known may be lower than any other
			p.DriverMajor, p.DriverMinor = 0, 0
			return
		}
		g.lowerDriver(offers[i].DriverMajor, offers[i].DriverMinor)
	}
}

// agree sets an open field to the value of all offers.
func agree[T comparable](g *gathered, what string, field *T, offers []Pool, of func(*Pool) T) {
	var open, told T
	for i := range offers {
		got := of(&offers[i])
		switch {
		case got == open:
		case *field != open && got != *field:
			g.note("%s: declared %v, and a node's labels say %v", what, *field, got)
			return
		case told != open && got != told:
			g.note("%s: not declared, and the nodes' labels say %v and %v", what, told, got)
			return
		default:
			told = got
		}
	}
	if *field == open {
		*field = told
	}
}

// recall fills fields that are still open from the pool as it was known before, if it has no node at the moment.
func (g *gathered) recall(remembered []Pool) {
	p := &g.pool
	i := slices.IndexFunc(remembered, func(r Pool) bool {
		return r.Declared && r.Name == p.Name && r.Site == p.Site && r.Resource == p.Resource && r.Strategy == p.Strategy
	})
	if len(g.nodes) > 0 || i < 0 {
		return
	}
	r := &remembered[i]
	p.DeviceMemory, p.InstanceMemory = cmp.Or(p.DeviceMemory, r.DeviceMemory), cmp.Or(p.InstanceMemory, r.InstanceMemory)
	p.Replicas, p.Product = cmp.Or(p.Replicas, r.Replicas), cmp.Or(p.Product, r.Product)
	if p.DriverMajor == 0 {
		p.DriverMajor, p.DriverMinor = r.DriverMajor, r.DriverMinor
	}
}

// requireGranular keeps the pods of a granular pool from nodes that match its selector and are shared in another way.
func requireGranular(p *Pool, d *config.PoolSpec) {
	for _, r := range []struct {
		key   string
		value int
	}{{labelCount, 1}, {labelReplicas, d.Replicas}} {
		if _, ok := d.Selector[r.key]; !ok {
			p.Requirements = append(p.Requirements,
				corev1.NodeSelectorRequirement{Key: r.key, Operator: corev1.NodeSelectorOpIn, Values: []string{strconv.Itoa(r.value)}})
		}
	}
}

// Selects reports whether a declared pool's selector names the node.
func (p *Pool) Selects(node *corev1.Node) bool {
	return p.Declared && selects(&config.PoolSpec{Selector: p.Labels}, node.Labels)
}

// LeavesOut is why the replicas on a node are not the parts that the pool declares; "": they are, or it declares none.
func (p *Pool) LeavesOut(node *corev1.Node) string {
	if !p.Granular {
		return ""
	}
	offer := OfferOf(node, p.Resource)
	_, gke := node.Labels[labelGKESharing]
	switch count := node.Labels[labelCount]; {
	case gke:
		return "GKE's device plugin gives a container one replica"
	case count != "1":
		return fmt.Sprintf("a granular pool needs one GPU a node, and label %s says %s", labelCount, message.Quote(count))
	case offer.Strategy == "":
		return strings.Join(offer.Notes, "; ")
	case offer.Strategy != p.Strategy, offer.MIGProfile != "":
		return strings.TrimSpace(fmt.Sprintf("its labels tell of strategy %s %s", offer.Strategy, offer.MIGProfile))
	case offer.Replicas != p.Replicas:
		return fmt.Sprintf("replicas: declared %d, and its labels say %d", p.Replicas, offer.Replicas)
	case offer.DeviceMemory < p.DeviceMemory:
		return fmt.Sprintf("device memory: declared %s, and its labels say %s", p.DeviceMemory, offer.DeviceMemory)
	}
	return ""
}
