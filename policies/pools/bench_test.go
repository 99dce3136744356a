package pools

import (
	"fmt"
	"testing"
	"time"

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

// offeredByClass are nodes of one kind, of which each has what a device class offers.
func offeredByClass(n int) ([]*corev1.Node, classOffers) {
	nodes, offers := make([]*corev1.Node, n), classOffers{}
	for i := range nodes {
		nodes[i] = shared(fmt.Sprintf("n%d", i), "4")
		offers[nodes[i].Name] = []Pool{{Resource: "deviceclass.resource.kubernetes.io/gpu.nvidia.com"}}
	}
	return nodes, offers
}

// BenchmarkPoolsFromResourceSlices derives the pools of a large cluster whose nodes publish their devices.
func BenchmarkPoolsFromResourceSlices(b *testing.B) {
	nodes, offers := offeredByClass(5000)
	for b.Loop() {
		derivedPools(nodes, offers, config.PoolsSpec{})
	}
}

// TestGroupAlikeOfResourceSlices: a node that publishes its devices is not compared with every other one.
func TestGroupAlikeOfResourceSlices(t *testing.T) {
	nodes, offers := offeredByClass(8000)
	fastest := func(offers classOffers, groups int) time.Duration {
		least := time.Hour
		for range 3 {
			begin := time.Now()
			if n := len(groupAlike(nodes, offers, config.PoolsSpec{})); n != groups {
				t.Fatalf("%d groups, want %d", n, groups)
			}
			least = min(least, time.Since(begin))
		}
		return least
	}
	if without, with := fastest(nil, 1), fastest(offers, len(nodes)); with > 20*without {
		t.Errorf("grouped in %v, and in %v without what they publish", with, without)
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
