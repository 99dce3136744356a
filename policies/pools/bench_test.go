package pools

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/config"
)

// BenchmarkPoolsFromNodes derives the pools of a large cluster, as happens when a node joins.
func BenchmarkPoolsFromNodes(b *testing.B) {
	nodes := make([]*corev1.Node, 5000)
	for i := range nodes {
		nodes[i] = shared(fmt.Sprintf("n%d", i), fmt.Sprint(2+i%3))
	}
	for b.Loop() {
		FromNodes(nodes, config.PoolsSpec{}, nil)
	}
}

// BenchmarkReach asks for a pod that is pinned to a zone whether it can reach a pool of 5,000 nodes.
func BenchmarkReach(b *testing.B) {
	nodes := make([]*corev1.Node, 5000)
	for i := range nodes {
		nodes[i] = in(shared(fmt.Sprintf("n%d", i), "4"), "zone", fmt.Sprint(i%3))
	}
	pool := FromNodes(nodes, config.PoolsSpec{}, nil)[0]
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"zone": "2"}}}
	for b.Loop() {
		pool.Reach(pod, nil)
	}
}
