package pools

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// nodeKinds merges nodes, which come in the order of their names, that a pod's constraints can only tell apart by name.
// With thousands of nodes of a few kinds, checking whether a pod can reach a pool costs a few comparisons.
func nodeKinds(nodes []*corev1.Node) []nodeKind {
	var kinds []nodeKind
	byHash := map[uint64][]int{}
	seed := maphash.MakeSeed() // only groups candidates: merged nodes were compared
	for _, node := range nodes {
		taints := lastingTaints(node.Spec.Taints)
		name := nodeName{Name: node.Name, Hostname: node.Labels[corev1.LabelHostname]}
		hash := kindHash(seed, node.Labels, taints)
		at := slices.IndexFunc(byHash[hash], func(k int) bool {
			return sameKind(kinds[k].Labels, node.Labels) && slices.EqualFunc(kinds[k].Taints, taints, sameTaint)
		})
		if at >= 0 {
			kind := &kinds[byHash[hash][at]]
			kind.Named = append(kind.Named, name)
			continue
		}
		byHash[hash] = append(byHash[hash], len(kinds))
		kinds = append(kinds, nodeKind{Labels: kindLabels(node.Labels), Taints: taints, Named: []nodeName{name}})
	}
	return kinds
}

// HasNode reports whether the node of that name is one of the pool's.
func (p *Pool) HasNode(name string) bool {
	return slices.ContainsFunc(p.Nodes, func(kind nodeKind) bool {
		return slices.ContainsFunc(kind.Named, func(n nodeName) bool { return n.Name == name })
	})
}

// namesNode reports whether a label only names or dates its node, or changes while the node stays the same.
func namesNode(key string) bool {
	switch key {
	case corev1.LabelHostname, "nvidia.com/gfd.timestamp", "nvidia.com/gpu-driver-upgrade-state",
		"alpha.eksctl.io/instance-id":
		return true
	}
	return strings.HasPrefix(key, "nvidia.com/gpu.deploy.")
}

func kindLabels(labels map[string]string) map[string]string {
	kept := maps.Clone(labels)
	maps.DeleteFunc(kept, func(key, _ string) bool { return namesNode(key) })
	return kept
}

// sameKind reports whether labels are those of the kind, but for those that name the node.
func sameKind(kind, labels map[string]string) bool {
	n := 0
	for key, value := range labels {
		if namesNode(key) {
			continue
		}
		if got, ok := kind[key]; !ok || got != value {
			return false
		}
		n++
	}
	return n == len(kind)
}

// kindHash does not depend on the order of labels.
func kindHash(seed maphash.Seed, labels map[string]string, taints []corev1.Taint) uint64 {
	sum := uint64(len(taints))
	for key, value := range labels {
		if !namesNode(key) {
			sum += maphash.String(seed, key)*31 + maphash.String(seed, value)
		}
	}
	for _, t := range taints {
		sum += maphash.String(seed, t.Key)
	}
	return sum
}

func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

// lastingTaints are those that keep pods away as long as the node exists, sorted. Cordoned, unhealthy and draining
// nodes come back, or others come in their place.
func lastingTaints(taints []corev1.Taint) []corev1.Taint {
	var kept []corev1.Taint
	for _, t := range taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule || passingTaint(t.Key) {
			continue
		}
		kept = append(kept, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	slices.SortFunc(kept, func(a, b corev1.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	return kept
}

func passingTaint(key string) bool {
	switch key {
	case "ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "karpenter.sh/disrupted",
		"karpenter.sh/unregistered":
		return true
	}
	return strings.HasPrefix(key, "node.kubernetes.io/") || strings.HasPrefix(key, "node.cloudprovider.kubernetes.io/")
}

// inCommon are the labels and taints that all kinds of a pool's nodes share.
func inCommon(kinds []nodeKind) (map[string]string, []corev1.Taint) {
	if len(kinds) == 0 {
		return nil, nil
	}
	labels, taints := maps.Clone(kinds[0].Labels), slices.Clone(kinds[0].Taints)
	for _, kind := range kinds[1:] {
		maps.DeleteFunc(labels, func(key, value string) bool {
			got, ok := kind.Labels[key]
			return !ok || got != value
		})
		taints = slices.DeleteFunc(taints, func(t corev1.Taint) bool {
			return !slices.ContainsFunc(kind.Taints, func(o corev1.Taint) bool { return sameTaint(t, o) })
		})
	}
	return labels, taints
}

// handlersOf are the runtime handlers that every node of a pool reports; none if one does not report any.
func handlersOf(nodes []*corev1.Node) (common []string) {
	for i, n := range nodes {
		var names []string
		for _, h := range n.Status.RuntimeHandlers {
			if h.Name != "" {
				names = append(names, h.Name)
			}
		}
		if i == 0 {
			common = names
			continue
		}
		common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(names, name) })
	}
	slices.Sort(common)
	return common
}
