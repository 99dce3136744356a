package pools

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Resources are the names by which pods can request devices of any kind now, sorted: the extended resources of nodes, and those that
// device classes stand for.
func (s Source) Resources() []string {
	names := extendedOf(s.Nodes)
	for _, class := range s.Classes {
		if name := class.Spec.ExtendedResourceName; name != nil {
			names = append(names, *name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// extendedOf are the extended resources that one of the nodes has, sorted. Capacity keeps those of a device plugin that restarts.
func extendedOf(nodes []*corev1.Node) []string {
	found := map[string]bool{}
	for _, node := range nodes {
		for name, amount := range node.Status.Capacity {
			if strings.Contains(string(name), "/") && !amount.IsZero() {
				found[string(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
