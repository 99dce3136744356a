package pools

import (
	"hash/maphash"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/config"
)

// alike are nodes of which the same offers are read.
type alike struct {
	nodes     []*corev1.Node
	resources []string          // that they offer now and no declaration claims, sorted
	labels    map[string]string // but for those that name a node
}

// groupAlike groups nodes, which come in the order of their names. Thousands of nodes are of a few kinds, and reading what one
// offers costs more than comparing it with another. What device classes offer is read of each node by itself.
func groupAlike(nodes []*corev1.Node, byClass classOffers, spec config.PoolsSpec) []*alike {
	var groups []*alike
	byHash := map[uint64][]*alike{}
	seed := maphash.MakeSeed() // only groups candidates: what is merged was compared
	for _, node := range nodes {
		resources := undeclaredResources(node, spec)
		if len(resources)+len(byClass[node.Name]) == 0 {
			continue
		}
		hash := kindHash(seed, node.Labels, nil)
		at := slices.IndexFunc(byHash[hash], func(o *alike) bool {
			return len(byClass[node.Name])+len(byClass[o.nodes[0].Name]) == 0 && o.same(node, resources)
		})
		if at >= 0 {
			same := byHash[hash][at]
			same.nodes = append(same.nodes, node)
			continue
		}
		group := &alike{[]*corev1.Node{node}, resources, kindLabels(node.Labels)}
		byHash[hash] = append(byHash[hash], group)
		groups = append(groups, group)
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
	first := o.nodes[0]
	return slices.Equal(o.resources, resources) && sameKind(o.labels, node.Labels) && !slices.ContainsFunc(resources, func(r string) bool {
		name := corev1.ResourceName(r)
		return units(node.Status.Capacity, name) != units(first.Status.Capacity, name) || units(node.Status.Allocatable, name) != units(first.Status.Allocatable, name)
	})
}
