package source

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/policies/pools"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// Labels of GPU feature discovery that pools are not made of.
const (
	labelCount      = "nvidia.com/gpu.count"
	labelMIGCapable = "nvidia.com/mig.capable"
	labelTimestamp  = "nvidia.com/gfd.timestamp"
)

func (r *reader) readNodes(ctx context.Context) error {
	nodes, err := installed.Nodes(ctx, r.Client)
	if err != nil {
		return err
	}
	objects, err := r.readObjects(ctx, nodes)
	if err != nil {
		return err
	}
	r.addNodes(objects)
	return nil
}

// addNodes adds the nodes with GPUs, and their pools.
func (r *reader) addNodes(objects webhookcluster.Objects) {
	byName := map[string]*corev1.Node{}
	for _, n := range objects.Source.Nodes {
		byName[n.Name] = n
	}
	all := webhookcluster.ReadSnapshot(objects).Pools()
	r.pools = all
	for i := range all {
		r.addPool(&all[i], byName, objects.Source.Slices)
	}
	for name, n := range byName {
		if r.nodes[name] == nil && r.offersGPUs(n) {
			r.node(n)
		}
		for resource := range n.Status.Allocatable {
			r.countOther(string(resource), func(o *others) { o.nodes++ })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.nodes)) {
		r.out.Nodes = append(r.out.Nodes, *r.nodes[name])
	}
	for i := range r.out.Nodes { // pods add to them
		r.nodes[r.out.Nodes[i].Name] = &r.out.Nodes[i]
	}
}

// offersGPUs reports whether a node has or had GPUs.
func (r *reader) offersGPUs(n *corev1.Node) bool {
	for name := range n.Status.Capacity {
		if pools.IsGPU(string(name), r.pools) {
			return true
		}
	}
	return n.Labels["nvidia.com/gpu.present"] == "true"
}

// node is the node in the fleet.
func (r *reader) node(n *corev1.Node) *inventory.Node {
	if known := r.nodes[n.Name]; known != nil {
		return known
	}
	labels := maps.Clone(n.Labels)
	delete(labels, labelTimestamp)
	out := &inventory.Node{Name: n.Name, Labels: labels, Taints: n.Spec.Taints,
		Unschedulable: n.Spec.Unschedulable, Allocatable: resources(n.Status.Allocatable)}
	for _, c := range n.Status.Conditions {
		out.NotReady = out.NotReady || c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	}
	out.GPUs.MIG = n.Labels[labelMIGCapable] == "true"
	r.nodes[n.Name] = out
	return out
}

// resources are the amounts of a list, up to inventory.MaxQuantity of each.
func resources(list corev1.ResourceList) inventory.Resources {
	out := inventory.Resources{}
	for name, q := range list {
		n := min(q.Value(), inventory.MaxQuantity)
		if name == corev1.ResourceCPU {
			n = inventory.MaxQuantity
			if q.Value() < inventory.MaxQuantity/1000 { // above, thousandths may overflow
				n = q.MilliValue()
			}
		}
		if n > 0 {
			out[string(name)] = n
		}
	}
	return out
}

// addPool adds a pool that nodes offer, to them too.
func (r *reader) addPool(p *pools.Pool, nodes map[string]*corev1.Node, published []*resourcev1.ResourceSlice) {
	offered := false
	for _, kind := range p.Nodes {
		for _, named := range kind.Named {
			n := nodes[named.Name]
			if n == nil {
				continue
			}
			units := installed.Count(n.Status.Allocatable, p.Resource)
			if p.DeviceClass != "" {
				units = devices(p, n.Name, published) * int64(max(p.Replicas, 1))
			}
			units = min(units, inventory.MaxUnits)
			out := r.node(n)
			out.Offers = append(out.Offers, inventory.Offer{Pool: p.Name, Units: units})
			addGPUs(out, p, units)
			offered = true
		}
	}
	if offered {
		share := 0.0
		if !p.Sharing().Claims {
			share = p.Share(0).Float()
		}
		r.out.Pools = append(r.out.Pools, inventory.Pool{
			Name: p.Name, Resource: p.Resource, Class: p.DeviceClass, Strategy: p.Strategy,
			Product: p.Product, DeviceMemory: p.DeviceMemory, InstanceMemory: p.InstanceMemory,
			Slice: p.Usable(), Reserve: p.Reserve, Replicas: p.Replicas, Share: share,
			Granular: p.Granular, MIGProfile: p.MIGProfile, Claims: p.Sharing().Claims, Driver: p.Driver(),
		})
	}
}

// devices is how many devices of a pool's class the node's slices publish.
func devices(p *pools.Pool, node string, published []*resourcev1.ResourceSlice) (n int64) {
	for _, s := range published {
		if s.Spec.NodeName == nil || *s.Spec.NodeName != node || s.Spec.Driver != p.DeviceDriver {
			continue
		}
		for i := range s.Spec.Devices {
			d := s.Spec.Devices[i].Attributes
			if text(d, s.Spec.Driver, "profile") == p.MIGProfile && (p.MIGProfile != "" || text(d, s.Spec.Driver, "type") != "mig") {
				n++
			}
		}
	}
	return n
}

// text is an attribute with or without its driver's name.
func text(all map[resourcev1.QualifiedName]resourcev1.DeviceAttribute, driver, name string) string {
	for _, key := range []string{name, driver + "/" + name} {
		if a, ok := all[resourcev1.QualifiedName(key)]; ok && a.StringValue != nil {
			return *a.StringValue
		}
	}
	return ""
}

// addGPUs adds a pool's facts about the node's devices. The number of whole devices is that of a label, or follows from
// their replicas; of MIG instances alone it is the least that has room for them.
func addGPUs(n *inventory.Node, p *pools.Pool, units int64) {
	g := &n.GPUs
	if g.Product == "" {
		g.Product = p.Product
	}
	g.Memory = max(g.Memory, p.DeviceMemory)
	g.MIG = g.MIG || p.MIGProfile != ""
	single := p.MIGProfile != "" && p.DeviceMemory == 0 // the labels of nvidia.com/gpu are those of an instance
	if labeled := number(n.Labels[labelCount]); labeled > 0 && !single && p.DeviceClass == "" {
		g.Count = labeled
		return
	}
	if p.Strategy == "" && p.MIGProfile == "" { // units may be parts of GPUs, or of none, as those of virtual nodes
		return
	}
	share := p.Share(p.Usable()).Float()
	if share <= 0 {
		return
	}
	per := math.Floor(1/share + 1e-9)
	if p.Sharing().Claims {
		per = 1
	}
	count := int(math.Ceil(float64(units) / max(per, 1)))
	if p.MIGProfile == "" {
		g.Count = max(g.Count, min(count, inventory.MaxGPUs))
		return
	}
	g.Count, g.Derived = max(g.Count, min(count, inventory.MaxGPUs)), true
}

// number is a label's number of GPUs; 0: it is none.
func number(label string) int {
	n, err := strconv.ParseUint(label, 10, 32)
	if err != nil || n > inventory.MaxGPUs {
		return 0
	}
	return int(n)
}
