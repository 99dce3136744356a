package doctor

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// checkHeldTwice looks for pods that hold a GPU under a name that their node no longer offers: the kubelet counts what is held by
// name, so that the plugin's GPUs are all free under the new one.
func checkHeldTwice(f *Facts) []Finding {
	found := newFinding(Problem, "pods hold GPUs under a name that the device plugin gave up on their node: the same GPUs are offered again under another name").
		WithRemedy("kubectl drain the node, or delete the pods that hold the old name, and drain a node before its plugin is changed")
	nodes := map[string]*corev1.Node{}
	for _, n := range f.Nodes {
		nodes[n.Name] = n
	}
	for _, h := range slices.SortedFunc(maps.Keys(f.Held), func(a, b held) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.resource, b.resource))
	}) {
		n := nodes[h.node]
		if n == nil || !pools.IsGPU(string(h.resource), nil) || !gaveUp(n, h.resource) {
			continue
		}
		if now := pluginResource(n); now != "" {
			amount := n.Status.Allocatable[now]
			found = found.With(object("node", "", n.Name), "held", string(h.resource)).
				With(object("node", "", n.Name), "status.allocatable["+string(now)+"]", amount.String())
		}
	}
	return withEvidence(found)
}

// gaveUp reports whether a node no longer offers a resource. Instances may be unhealthy beside others that are not; they still count
// to the node's capacity.
func gaveUp(n *corev1.Node, name corev1.ResourceName) bool {
	left := n.Status.Allocatable[name]
	if strings.HasPrefix(string(name), nvidia.MIGPrefix) {
		left = n.Status.Capacity[name]
	}
	return left.IsZero()
}
