package policies

import corev1 "k8s.io/api/core/v1"

// PoolsFromNodes derives the pools of a cluster: those that spec declares first, then one for each distinct offer of
// the nodes that no declaration claims, then those remembered that no node offers any more. The order is stable.
func PoolsFromNodes(nodes []*corev1.Node, spec PoolsSpec, remembered []Pool) []Pool {
	return nil
}
