package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/pools"
)

// TestGeneration: a node that changes no pool changes no generation, by which watches start again.
func TestGeneration(t *testing.T) {
	t.Parallel()
	node := func(name, product string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if product != "" {
			n.Labels = map[string]string{"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": "23034", "nvidia.com/gpu.count": "1",
				"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
			n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu.shared": resource.MustParse("4")}
		}
		return n
	}
	policy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gpuslice-system", Name: "default", ResourceVersion: "7"}}
	next := func(before *Snapshot, policies []*corev1.ConfigMap, nodes ...*corev1.Node) *Snapshot {
		s, _ := Next(before, Objects{Policies: policies, Source: pools.Source{Nodes: nodes}}, nil, time.Now())
		return s
	}
	first := next(nil, nil, node("gpu-1", "NVIDIA-L4"))
	for name, c := range map[string]struct {
		next *Snapshot
		same bool
	}{
		"a node without GPUs":    {next(first, nil, node("gpu-1", "NVIDIA-L4"), node("cpu-1", "")), true},
		"a node by name":         {next(first, nil, node("gpu-1", "NVIDIA-L4"), node("gpu-2", "NVIDIA-L4")), false}, // pods may name it
		"a node of another pool": {next(first, nil, node("gpu-1", "NVIDIA-L4"), node("gpu-2", "NVIDIA-A10")), false},
		"a policy":               {next(first, []*corev1.ConfigMap{policy}, node("gpu-1", "NVIDIA-L4")), false},
	} {
		if same := c.next.Generation("team-a") == first.Generation("team-a"); same != c.same {
			t.Errorf("%s: the same generation: %t, want %t", name, same, c.same)
		}
	}
}
