package layout

import (
	"testing"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
)

// TestAssignBySize: a replica of a smaller device is none of a larger one's, and nodes that no pod needs keep their form.
func TestAssignBySize(t *testing.T) {
	f := &demand.Fleet{Kinds: []demand.Kind{
		{Model: "small", Devices: 2, DeviceMemory: 24 << 10, CPU: 64000, Memory: 1 << 20, Strategy: TimeSlicing, Replicas: 3,
			Offers: map[string]int64{"nvidia.com/gpu.shared": 6}},
		{Model: "large", Devices: 4, DeviceMemory: 80 << 10, CPU: 64000, Memory: 1 << 20, Offers: map[string]int64{"nvidia.com/gpu": 4}},
	}}
	for kind, n := range []int{4, 2} {
		for range n {
			f.Add("", kind)
		}
	}
	for range 14 {
		f.Pods = append(f.Pods,
			demand.Pod{Devices: 1, Share: 1, DeviceMemory: 10 << 10, CPU: 1000, Requests: map[string]int64{"nvidia.com/gpu": 1}})
	}
	for _, strategies := range []Families{Default(f), {Claims: true}} {
		a := Assign(f, strategies, Pack(f, strategies))
		held := make([]int, len(f.Nodes))
		for _, at := range a.Placed {
			if at < 0 || f.Nodes[at].Kind == 0 {
				t.Fatalf("a pod is placed at %d", at)
			}
			held[at]++
		}
		for i, form := range a.Forms {
			if held[i] == 0 && !form.SameAs(&f.Kinds[f.Nodes[i].Kind]) {
				t.Errorf("node %d, which no pod needs, gets %+v", i, form)
			}
		}
	}
}
