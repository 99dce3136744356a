package pools

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/config"
)

func TestRemember(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	node := shared("n1", "4")
	live := Source{Nodes: []*corev1.Node{node}}.Remember(config.PoolsSpec{}, Known{Now: begin})
	if len(live) != 1 || live[0].Remembered() {
		t.Fatalf("pools with a node: %q", digest(live))
	}
	restarting := offering(node.DeepCopy(), map[string]int64{"gpu.shared": 0})
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		spec  config.PoolsSpec
		after time.Duration
		want  []int // replicas of the pools that are known
	}{
		"its node was deleted":           {nil, config.PoolsSpec{}, time.Hour, []int{4}},
		"its node was deleted a day ago": {nil, config.PoolsSpec{}, 24 * time.Hour, nil},
		"policy remembers for longer": {nil, config.PoolsSpec{RememberFor: &metav1.Duration{Duration: 48 * time.Hour}},
			24 * time.Hour, []int{4}},
		"policy remembers nothing":               {nil, config.PoolsSpec{RememberFor: &metav1.Duration{}}, 0, nil},
		"its plugin restarts":                    {[]*corev1.Node{restarting}, config.PoolsSpec{}, time.Hour, []int{4}},
		"its node offers other replicas":         {[]*corev1.Node{halved("n1")}, config.PoolsSpec{}, 2 * time.Minute, []int{2}},
		"its node offers other replicas by now":  {[]*corev1.Node{halved("n1")}, config.PoolsSpec{}, time.Second, []int{2, 4}},
		"another node offers other replicas":     {[]*corev1.Node{halved("n2")}, config.PoolsSpec{}, time.Hour, []int{2, 4}},
		"its node is there, and offers the same": {[]*corev1.Node{node}, config.PoolsSpec{}, 48 * time.Hour, []int{4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost := Source{Nodes: c.nodes}.Remember(c.spec, Known{Before: live, Saved: saved(t, live), Now: begin})
			got := replicasOf(Source{Nodes: c.nodes}.Remember(c.spec, Known{Before: lost, Saved: saved(t, lost), Now: begin.Add(c.after)}))
			if !slices.Equal(got, c.want) {
				t.Errorf("after %s the pools have %v replicas, want %v", c.after, got, c.want)
			}
			restarted := replicasOf(Source{Nodes: c.nodes}.Remember(c.spec, Known{Saved: saved(t, lost), Now: begin.Add(c.after)}))
			if !slices.Equal(restarted, c.want) {
				t.Errorf("after a restart the pools have %v replicas, want %v", restarted, c.want)
			}
		})
	}
}

// halved is a node that offers two replicas.
func halved(name string) *corev1.Node {
	return offering(shared(name, "2"), map[string]int64{"gpu.shared": 2})
}

// saved are pools as they come back from where they were saved.
func saved(t *testing.T, pools []Pool) (out []Pool) {
	t.Helper()
	text, err := json.Marshal(pools)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func replicasOf(pools []Pool) (out []int) {
	for _, p := range pools {
		out = append(out, p.Replicas)
	}
	slices.Sort(out)
	return out
}
