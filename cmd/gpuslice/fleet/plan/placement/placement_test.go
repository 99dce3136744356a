package placement

import (
	"testing"
)

func TestStock(t *testing.T) {
	gpus := func(n int64) map[string]int64 { return map[string]int64{"nvidia.com/gpu": n} }
	for _, c := range []struct {
		name  string
		nodes []Node
		pods  []Pod
		want  []int
	}{
		{"no nodes", nil, []Pod{{CPU: 1}}, []int{Waits}},
		{"no pods", []Node{{CPU: 1}}, nil, []int{}},
		{"spread by CPU and memory", []Node{{CPU: 4000, Memory: 4096, Extended: gpus(2)}, {CPU: 8000, Memory: 8192, Extended: gpus(2)}},
			[]Pod{{CPU: 1000, Memory: 1024, Extended: gpus(1)},
				{CPU: 4000, Memory: 4096, Extended: gpus(1)}, {CPU: 1000, Memory: 1024, Extended: gpus(1)}},
			[]int{1, 1, 0}},
		{"a count that is used up", []Node{{CPU: 8000, Memory: 8192, Extended: gpus(1)}},
			[]Pod{{Extended: gpus(1)}, {Extended: gpus(1)}}, []int{0, Waits}},
		{"a resource that nobody offers", []Node{{CPU: 8000, Memory: 8192}}, []Pod{{Extended: gpus(1)}}, []int{Waits}},
		{"a kind that is not allowed", []Node{{CPU: 8000, Kind: 0}, {CPU: 1000, Kind: 1}},
			[]Pod{{CPU: 500, Allowed: []bool{false, true}}}, []int{1}},
		{"a limit of pods", []Node{{CPU: 8000, Pods: 1}}, []Pod{{}, {}}, []int{0, Waits}},
		{"a node full of other pods", []Node{{CPU: 8000, Pods: -1}}, []Pod{{}}, []int{Waits}},
		{"a pod that runs keeps its node, before those that wait", []Node{{CPU: 1000, Memory: 10}},
			[]Pod{{CPU: 600}, {CPU: 600, Node: 1}}, []int{Waits, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Stock(c.nodes, c.pods)
			if len(got) != len(c.want) {
				t.Fatalf("%v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("%v, want %v", got, c.want)
				}
			}
		})
	}
}
