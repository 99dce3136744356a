package pools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

// classOffers are the offers of device classes on nodes, by the nodes' names, each in the order of resource names.
type classOffers map[string][]Pool

// of returns a node's offer under a resource name; ok is false if it offers nothing by that name.
func (o classOffers) of(node *corev1.Node, resource string) (offer Pool, ok bool) {
	if _, ok := node.Status.Allocatable[corev1.ResourceName(resource)]; ok {
		return OfferOf(node, resource), true
	}
	for _, offer := range o[node.Name] {
		if offer.Resource == resource {
			return offer, true
		}
	}
	return Pool{}, false
}

// offersByClass reads the ResourceSlices of the nodes.
func (s Source) offersByClass(nodes []*corev1.Node) classOffers {
	published := s.current()
	out := classOffers{}
	for _, node := range nodes {
		offers := map[string]*Pool{}
		for _, slice := range published[node.Name] {
			for i := range slice.Spec.Devices {
				if d, ok := readDevice(slice.Spec.Driver, &slice.Spec.Devices[i]); ok {
					s.add(offers, node, slice.Spec.Driver, &d)
					s.addClaims(offers, node, slice.Spec.Driver, &d)
				}
			}
		}
		for _, resource := range slices.Sorted(maps.Keys(offers)) {
			out[node.Name] = append(out[node.Name], *offers[resource])
		}
	}
	return out
}

// current are the slices of nodes' own devices, by node: of each driver's pool those of the latest generation.
func (s Source) current() map[string][]*resourcev1.ResourceSlice {
	type pool struct{ node, driver, name string }
	latest := map[pool]int64{}
	of := func(r *resourcev1.ResourceSlice) (p pool, own bool) {
		if r == nil || r.DeletionTimestamp != nil || r.Spec.NodeName == nil {
			return p, false
		}
		return pool{*r.Spec.NodeName, r.Spec.Driver, r.Spec.Pool.Name}, true
	}
	for _, r := range s.Slices {
		if p, own := of(r); own {
			latest[p] = max(latest[p], r.Spec.Pool.Generation)
		}
	}
	out := map[string][]*resourcev1.ResourceSlice{}
	for _, r := range s.Slices {
		if p, own := of(r); own && r.Spec.Pool.Generation == latest[p] {
			out[p.node] = append(out[p.node], r)
		}
	}
	for _, all := range out {
		slices.SortFunc(all, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	}
	return out
}

// add adds a device of a node to the node's offers. Devices that no class offers are reported for NVIDIA's driver
// alone: others may not be GPUs.
func (s Source) add(offers map[string]*Pool, node *corev1.Node, driver string, d *device) {
	resource := d.resource()
	class, why := s.classOf(driver, resource, d)
	if class == "" && driver != nvidia.DRADriver {
		return
	}
	next, have := classOffer(node, class, driver, resource, d), offers[resource]
	next.ClaimsInstances = class != "" && driver == nvidia.DRADriver && claims.Takes(d.profile) &&
		claims.ClassChooses(s.Classes[claims.ClassInstances], driver, d.kind, d.profile)
	if why != "" {
		next.Strategy, next.Notes = "", []string{why}
	}
	switch {
	case have == nil, have.DeviceClass == "" && class != "":
		offers[resource] = &next
	case class == "" || have.Strategy == "":
	case offerKey(have) != offerKey(&next):
		have.Strategy, have.Notes = "", []string{
			fmt.Sprintf("DeviceClass %s offers devices of several kinds here as %s: which of them a pod gets is not known", class, resource)}
	case next.DriverMajor == have.DriverMajor && next.DriverMinor < have.DriverMinor:
		have.DriverMinor = next.DriverMinor
	}
}

// addClaims adds the claimable part of a device to its node's offers: devices of one size and product are one offer.
// Other devices than GPUs have memory too: GPUs are known by NVIDIA's driver, by the device's type, or by a product where there is no type.
func (s Source) addClaims(offers map[string]*Pool, node *corev1.Node, driver string, d *device) {
	isGPU := driver == nvidia.DRADriver || d.kind == typeGPU || d.kind == "" && d.product != ""
	if d.claims.largest == 0 || d.profile != "" || !isGPU {
		return
	}
	class := s.classClaimed(driver, d)
	if class == "" {
		return
	}
	r := nodeReader{labels: node.Labels, pool: Pool{
		Strategy:    strategies.With(func(s *strategies.Strategy) bool { return s.Claims }).Name,
		DeviceClass: class, DeviceDriver: driver, Product: d.product,
		DeviceMemory: d.memory, ClaimsShares: d.claims.shares, DriverMajor: d.major, DriverMinor: d.minor}}
	if d.claims.largest < d.memory {
		r.pool.LargestClaim = d.claims.largest
	}
	r.placeByLabels()
	key := fmt.Sprintf("%s %s %d %d %t", class, d.product, d.memory, d.claims.largest, d.claims.shares)
	have := offers[key]
	if have == nil || cmp.Or(cmp.Compare(d.major, have.DriverMajor), cmp.Compare(d.minor, have.DriverMinor)) < 0 {
		offers[key] = &r.pool
	}
}

// placeByLabels makes labels that the cluster's own components write of a node requirements of its pool.
func (r *nodeReader) placeByLabels() {
	r.pool.TrustDomain = r.text(strategies.LabelTrustDomain)
	r.require(corev1.LabelInstanceTypeStable, labelGKEAccelerator, strategies.LabelTrustDomain)
}

// classOffer is a node's offer of one device: a Pool without a name, nodes or site.
func classOffer(node *corev1.Node, class, driver, resource string, d *device) Pool {
	r := nodeReader{labels: node.Labels,
		pool: Pool{Resource: resource, DeviceClass: class, DeviceDriver: driver, Product: d.product, MIGProfile: d.profile,
			Replicas: d.units, DriverMajor: d.major, DriverMinor: d.minor}}
	if d.profile != "" {
		r.pool.InstanceMemory = d.memory
	} else {
		r.pool.DeviceMemory = d.memory
	}
	switch {
	case d.units == 1:
		r.pool.Strategy = unshared(d.profile).Name
	case d.units > 1:
		r.pool.Strategy = strategies.With(func(s *strategies.Strategy) bool { return s.Unlabeled }).Name
	default:
		r.unknown("any number of pods may share a device of DeviceClass %s, and nothing counts its memory; have its driver share out memory, or a number of shares", class)
	}
	r.checkInstance(api.ResourceGPU)
	r.placeByLabels()
	return r.pool
}

// tellApart makes pools of device classes require the names of their nodes if no label distinguishes these from nodes
// with another offer under the same resource name.
func tellApart(all map[string]*gathered) {
	keys := slices.Sorted(maps.Keys(all))
	mixed := map[string]string{} // by key, the pool whose nodes match too
	for _, key := range keys {
		for _, other := range keys {
			a, b := all[key], all[other]
			if a.pool.DeviceClass != "" && a.pool.Resource == b.pool.Resource &&
				offerKey(&a.pool) != offerKey(&b.pool) && !claimTells(&a.pool, &b.pool) && a.admits(b) {
				mixed[key] = b.pool.Name
			}
		}
	}
	for key, other := range mixed {
		all[key].requireNames(other)
	}
}

// claimTells reports whether a claim distinguishes devices of one pool from those of the other, so that labels of nodes
// need not: by its class or the devices' memory, or because they differ in nothing but the product.
func claimTells(a, b *Pool) bool {
	return a.Sharing().Claims && (a.DeviceClass != b.DeviceClass || a.DeviceMemory != b.DeviceMemory ||
		nvidia.DriverGeneration(a.DriverMajor) == nvidia.DriverGeneration(b.DriverMajor) && a.TrustDomain == b.TrustDomain)
}

// admits reports whether a node of other meets all that g requires.
func (g *gathered) admits(other *gathered) bool {
	return slices.ContainsFunc(other.nodes, func(n *corev1.Node) bool {
		view := nodeView{labels: n.Labels, named: true, name: nodeName{n.Name, n.Labels[corev1.LabelHostname]}}
		return !slices.ContainsFunc(g.pool.Requirements, func(r corev1.NodeSelectorRequirement) bool { return !view.satisfies(&r) })
	})
}

// requireNames makes the pool require the names of its nodes.
func (g *gathered) requireNames(other string) {
	var names []string
	for _, n := range g.nodes {
		if name := n.Labels[corev1.LabelHostname]; name != "" {
			names = append(names, name)
		}
	}
	if len(names) < len(g.nodes) || len(names) > maxLastNodes {
		g.pool.Strategy = ""
		g.note("no label distinguishes its %d nodes from those of pool %s, which offer something else as %s: give them different values of label %s, or declare the pool",
			len(g.nodes), message.Quote(other), g.pool.Resource, corev1.LabelInstanceTypeStable)
		return
	}
	slices.Sort(names)
	g.pool.Requirements = append(g.pool.Requirements,
		corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: names})
}
