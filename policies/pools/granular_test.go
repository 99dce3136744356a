package pools

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
)

// divided is a node with an A100 in 77 parts; labels are of nvidia.com.
func divided(labels map[string]string) *corev1.Node {
	all := map[string]string{"gpu.replicas": "77", "gpu.sharing-strategy": "time-slicing"}
	for key, value := range labels {
		all[key] = value
	}
	return in(discovered("n1", map[string]int64{"gpu.shared": 77}, all), "zone", "a")
}

func TestGranularPool(t *testing.T) {
	t.Parallel()
	declared := config.PoolSpec{Name: "parts", Selector: map[string]string{"zone": "a"}, Resource: nvidia.SharedGPU, Strategy: "time-slicing",
		DeviceMemory: 81920, Replicas: 77, Granular: true}
	for _, c := range []struct {
		name string
		node *corev1.Node
		want string // is part of why the node is left out; "": it is not
	}{
		{"one GPU in as many replicas", divided(nil), ""},
		{"a device that went bad", offering(divided(nil), map[string]int64{"gpu.shared": 76}), ""},
		{"two GPUs", offering(divided(map[string]string{"gpu.count": "2"}), map[string]int64{"gpu.shared": 154}),
			`one GPU a node, and label nvidia.com/gpu.count says "2"`},
		{"two GPUs, of which labels do not tell yet", offering(divided(nil), map[string]int64{"gpu.shared": 154}),
			"the node has 154 of nvidia.com/gpu.shared, more than its labels show"},
		{"no count", divided(map[string]string{"gpu.count": ""}), `nvidia.com/gpu.count says ""`},
		{"other replicas", divided(map[string]string{"gpu.replicas": "154"}), "replicas: declared 77, and its labels say 154"},
		{"MPS", divided(map[string]string{"gpu.sharing-strategy": "mps", "mps.capable": "true"}), "strategy mps"},
		{"MIG", divided(map[string]string{"gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "mig.strategy": "single"}), "1g.10gb"},
		{"a smaller device", divided(map[string]string{"gpu.memory": "40960"}), "device memory: declared 80Gi, and its labels say 40Gi"},
		{"GKE", in(divided(nil), labelGKESharing, "time-sharing"), "GKE's device plugin gives a container one replica"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pools := FromNodes([]*corev1.Node{c.node}, config.PoolsSpec{Declared: []config.PoolSpec{declared}}, nil)
			if len(pools) != 1 {
				t.Fatalf("%d pools: a node that is left out offers nothing else", len(pools))
			}
			p := &pools[0]
			if notes := strings.Join(p.Notes, "; "); p.HasNode("n1") != (c.want == "") ||
				!strings.Contains(notes, c.want) || c.want == "" && notes != "" {
				t.Errorf("has the node: %t, notes %q, want %q", p.HasNode("n1"), notes, c.want)
			}
			if c.want == "" {
				selectsItsNodes(t, p)
			}
			if p.Granule() != 1031 || p.Usable() != 77*1031 {
				t.Errorf("parts of %s, %s in all", p.Granule(), p.Usable())
			}
		})
	}
	t.Run("is a pool of one replica a slice unless it is declared", func(t *testing.T) {
		t.Parallel()
		pools := FromNodes([]*corev1.Node{divided(nil)}, config.PoolsSpec{}, nil)
		if len(pools) != 1 || pools[0].Granular || pools[0].Usable() != 1031 {
			t.Errorf("%+v", pools)
		}
	})
	t.Run("its pods stay where a part is what it was", func(t *testing.T) {
		t.Parallel()
		pools := FromNodes([]*corev1.Node{divided(nil)}, config.PoolsSpec{Declared: []config.PoolSpec{declared}}, nil)
		for key, value := range map[string]string{labelCount: "2", labelReplicas: "154"} {
			node := divided(nil)
			node.Labels[key] = value
			view := nodeView{labels: node.Labels}
			if term := (corev1.NodeSelectorTerm{MatchExpressions: pools[0].Requirements}); view.matches(&term) {
				t.Errorf("a node with %s=%s satisfies %v", key, value, pools[0].Requirements)
			}
		}
	})
}
