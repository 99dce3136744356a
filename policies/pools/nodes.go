package pools

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
)

// gathered is a pool while its nodes are gathered.
type gathered struct {
	pool  Pool
	nodes []*corev1.Node
}

// derivedPools makes one pool of each distinct offer that spec does not declare, in the order of their names.
func derivedPools(nodes []*corev1.Node, byClass classOffers, spec config.PoolsSpec) []Pool {
	byKey := map[string]*gathered{}
	for _, same := range groupAlike(nodes, byClass, spec) {
		offers := readOffers(same.nodes[0], same.resources, byClass[same.nodes[0].Name], spec)
		keys := make([]string, len(offers))
		for i := range offers {
			keys[i] = offerKey(&offers[i])
		}
		site := shortHash(strings.Join(keys, "\n"))
		for i, offer := range offers {
			key := site + "\n" + keys[i]
			g := byKey[key]
			if g == nil {
				offer.Site = site
				offer.Name = nameOf(&offer, shortHash(key))
				g = &gathered{pool: offer}
				byKey[key] = g
			}
			g.lowerDriver(offer.DriverMajor, offer.DriverMinor)
			g.nodes = append(g.nodes, same.nodes...)
		}
	}
	tellApart(byKey)
	pools := make([]Pool, 0, len(byKey))
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		pools = append(pools, byKey[key].finish(spec.Reserve))
	}
	slices.SortStableFunc(pools, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	return pools
}

// alike are nodes of which the same offers are read.
type alike struct {
	nodes     []*corev1.Node
	resources []string          // that they offer now and no declaration claims, sorted
	labels    map[string]string // but for those that name a node
}

// groupAlike groups nodes, which come in the order of their names. Thousands of nodes are of a few kinds, and reading
// an offer costs more than comparing it with another. Offers of device classes are read of each node by itself.
func groupAlike(nodes []*corev1.Node, byClass classOffers, spec config.PoolsSpec) (groups []*alike) {
	byHash, seed := map[uint64][]*alike{}, maphash.MakeSeed() // only groups candidates: merged nodes were compared
	for _, node := range nodes {
		resources := undeclaredResources(node, spec)
		if len(byClass[node.Name]) > 0 {
			groups = append(groups, &alike{nodes: []*corev1.Node{node}, resources: resources})
			continue
		}
		hash := kindHash(seed, node.Labels, nil)
		at := slices.IndexFunc(byHash[hash], func(o *alike) bool { return o.same(node, resources) })
		if at < 0 {
			at = len(byHash[hash])
			groups = append(groups, &alike{resources: resources, labels: kindLabels(node.Labels)})
			byHash[hash] = append(byHash[hash], groups[len(groups)-1])
		}
		byHash[hash][at].nodes = append(byHash[hash][at].nodes, node)
	}
	return groups
}

// undeclaredResources are the resources that a node offers now and no declaration claims, sorted.
func undeclaredResources(node *corev1.Node, spec config.PoolsSpec) (names []string) {
	for name := range node.Status.Allocatable {
		if isPoolResource(string(name)) && units(node.Status.Allocatable, name) > 0 && !declaredFor(spec, node.Labels, string(name)) {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

// same reports whether of a node the same is read.
func (o *alike) same(node *corev1.Node, resources []string) bool {
	return slices.Equal(o.resources, resources) && sameKind(o.labels, node.Labels) && !slices.ContainsFunc(resources, func(r string) bool {
		name, a, b := corev1.ResourceName(r), &node.Status, &o.nodes[0].Status
		return units(a.Capacity, name) != units(b.Capacity, name) || units(a.Allocatable, name) != units(b.Allocatable, name)
	})
}

// readOffers returns a node's offers by the names of resources, and those offers of device classes that no declaration
// claims. If a device class and a device plugin's resource have the same name, the scheduler gives pods the device
// plugin's.
func readOffers(node *corev1.Node, names []string, byClass []Pool, spec config.PoolsSpec) []Pool {
	offers := make([]Pool, len(names))
	for i, name := range names {
		offers[i] = OfferOf(node, name)
	}
	for _, offer := range byClass {
		at, offered := slices.BinarySearch(names, offer.Resource)
		switch {
		case offer.Sharing().Claims:
			if len(names) > 0 {
				offer.Notes = append(offer.Notes, "a device plugin offers GPUs of these nodes too: the same GPU may be given out twice")
			}
			offers = append(offers, offer)
		case offered:
			offers[at].Notes = append(offers[at].Notes,
				"a device plugin and a driver of dynamic resource allocation both offer "+offer.Resource+": the same GPU may be given out twice")
		case !declaredFor(spec, node.Labels, offer.Resource):
			offers = append(offers, offer)
		}
	}
	return offers
}

// lowerDriver notes a node's driver: a pool has the lowest of its nodes'.
func (g *gathered) lowerDriver(major, minor int) {
	p := &g.pool
	if p.DriverMajor == 0 || cmp.Or(cmp.Compare(major, p.DriverMajor), cmp.Compare(minor, p.DriverMinor)) < 0 {
		p.DriverMajor, p.DriverMinor = major, minor
	}
}

// finish completes the pool with the facts about its nodes.
func (g *gathered) finish(reserve config.ReserveSpec) Pool {
	p := g.pool
	p.keepFree(reserve)
	slices.SortFunc(g.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	p.Nodes, p.Handlers, p.Agents, p.Extended = nodeKinds(g.nodes), handlersOf(g.nodes), haveAgents(g.nodes), extendedOf(g.nodes)
	p.Labels, p.Taints = inCommon(p.Nodes)
	return p
}

// haveAgents reports whether each of the nodes has an agent. The kubelet keeps the capacity of a device plugin that has
// gone for five minutes, and offers none of it meanwhile.
func haveAgents(nodes []*corev1.Node) bool {
	return len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n *corev1.Node) bool {
		capacity := n.Status.Capacity[limits.GuardedResource]
		return capacity.Sign() <= 0
	})
}

// offerKey distinguishes offers. The driver's generation is among the requirements.
func offerKey(p *Pool) string {
	key := fmt.Sprintf("%q %q %q %d %d %d %q %q %q %q %q", p.Resource, p.Strategy, p.Product, p.DeviceMemory,
		p.InstanceMemory, p.Replicas, p.MIGProfile, p.MPSProvider, p.TrustDomain, requirementTexts(p), p.Notes)
	if p.DeviceClass != "" { // no label shows the generation of the driver
		key += fmt.Sprintf(" %q %d", p.DeviceClass, nvidia.DriverGeneration(p.DriverMajor))
	}
	if p.Sharing().Claims {
		key += fmt.Sprintf(" %d %t", p.LargestClaim, p.ClaimsShares)
	}
	return key
}

func requirementTexts(p *Pool) []string {
	texts := make([]string, len(p.Requirements))
	for i, r := range p.Requirements {
		texts[i] = r.Key + " " + string(r.Operator) + " " + strings.Join(r.Values, ",")
	}
	return texts
}

// nameOf is a name for people that stays the same while the offer does: "l4-time-slicing-4-9d2e01bc".
func nameOf(p *Pool, hash string) string {
	words := []string{strings.TrimPrefix(strings.ToLower(p.Product), "nvidia-")}
	if words[0] == "" {
		words[0] = "gpu"
	}
	words = append(words, p.MIGProfile, string(cmp.Or(p.Strategy, "unknown")))
	if p.Replicas > 1 {
		words = append(words, fmt.Sprint(p.Replicas))
	}
	words = slices.DeleteFunc(append(words, hash), func(w string) bool { return w == "" })
	return strings.Join(words, "-")
}

func shortHash(text string) string {
	h := fnv.New64a()
	h.Write([]byte(text))
	return fmt.Sprintf("%08x", uint32(h.Sum64()>>32)^uint32(h.Sum64()))
}
