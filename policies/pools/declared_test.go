package pools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

func shared(name, replicas string) *corev1.Node {
	return discovered(name, map[string]int64{"gpu.shared": 4},
		map[string]string{"gpu.replicas": replicas, "gpu.sharing-strategy": "time-slicing"})
}

func in(node *corev1.Node, key, value string) *corev1.Node {
	node.Labels[key] = value
	return node
}

func nodesOf(p *Pool) []string {
	var names []string
	for _, kind := range p.Nodes {
		for _, n := range kind.Named {
			names = append(names, n.Name)
		}
	}
	return names
}

func TestDiscoveredPool(t *testing.T) {
	t.Parallel()
	t.Run("nodes with one offer are one pool", func(t *testing.T) {
		t.Parallel()
		gone := shared("n0", "4")
		gone.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		cordoned := shared("n4", "4")
		cordoned.Spec.Unschedulable = true
		cordoned.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}}
		nodes := []*corev1.Node{cordoned, shared("n2", "4"), gone, shared("n1", "4"), shared("n3", "8"),
			in(shared("n5", "4"), nvidia.LabelDriverMajor, "550"), in(shared("n6", "4"), nvidia.LabelDriverMajor, "570"),
			in(shared("n7", "4"), strategies.LabelTrustDomain, "red"), nil}
		pools := FromNodes(nodes, config.PoolsSpec{}, nil)
		got := map[string]string{}
		for i := range pools {
			p := &pools[i]
			selectsItsNodes(t, p)
			got[strings.Join(nodesOf(p), " ")] = fmt.Sprintf("x%d driver %d %s", p.Replicas, p.DriverMajor, p.TrustDomain)
		}
		want := map[string]string{"n1 n2 n4 n6": "x4 driver 570 ", "n3": "x8 driver 580 ", "n5": "x4 driver 550 ", "n7": "x4 driver 580 red"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		slices.Reverse(nodes)
		if diff := cmp.Diff(pools, FromNodes(nodes, config.PoolsSpec{}, nil)); diff != "" {
			t.Errorf("another order of nodes gives other pools (-want +got):\n%s", diff)
		}
	})
	t.Run("is remembered without its nodes", func(t *testing.T) {
		t.Parallel()
		node := in(shared("n1", "4"), "zone", "a")
		node.Spec.Taints = []corev1.Taint{{Key: api.ResourceGPU, Effect: corev1.TaintEffectNoSchedule}}
		before := FromNodes([]*corev1.Node{node}, config.PoolsSpec{}, nil)
		text, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		var kept []Pool
		if err := json.Unmarshal(text, &kept); err != nil {
			t.Fatal(err)
		}
		restarting := offering(node.DeepCopy(), map[string]int64{"gpu.shared": 0})
		for name, nodes := range map[string][]*corev1.Node{"the node is gone": nil, "its plugin restarts": {restarting}} {
			after := FromNodes(nodes, config.PoolsSpec{}, kept)
			before[0].Nodes, before[0].Extended = nil, nil
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("%s (-before +after):\n%s", name, diff)
			}
			if ok, _ := after[0].Reach(&corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"zone": "b"}}}, nil); ok {
				t.Errorf("%s: its labels are forgotten", name)
			}
		}
		if again := FromNodes([]*corev1.Node{node}, config.PoolsSpec{}, kept); len(again) != 1 || len(again[0].Nodes) != 1 {
			t.Errorf("a pool that came back is there twice: %q", digest(again))
		}
		declared := config.PoolsSpec{Declared: []config.PoolSpec{{Name: "mine", Selector: map[string]string{"zone": "a"},
			Resource: nvidia.SharedGPU, Strategy: "time-slicing", Replicas: 4}}}
		if again := FromNodes(nil, declared, kept); len(again) != 1 || again[0].Name != "mine" {
			t.Errorf("a remembered pool that is declared by now is there twice: %q", digest(again))
		}
		many := make([]Pool, 2*maxRemembered)
		for i := range many {
			many[i] = Pool{Name: fmt.Sprint(i), Strategy: "exclusive"}
		}
		if n := len(FromNodes(nil, config.PoolsSpec{}, many)); n != maxRemembered {
			t.Errorf("%d pools are remembered", n)
		}
	})
}

func TestDeclaredPool(t *testing.T) {
	t.Parallel()
	t.Run("wins", func(t *testing.T) {
		t.Parallel()
		spec := config.PoolSpec{Name: "h100", Selector: map[string]string{"pool": "h100"},
			Resource: nvidia.SharedGPU, Strategy: "mps", MPSProvider: "host-daemon",
			DeviceMemory: 81559, Replicas: 4, Taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}}
		mine := func(name, release string) *corev1.Node {
			return in(in(shared(name, "4"), "pool", "h100"), nvidia.LabelDriverMajor, release)
		}
		open := spec
		open.DeviceMemory = 0
		updated := spec
		updated.Driver = "615.71.09"
		other := spec
		other.Selector = map[string]string{"pool": "other"}
		for _, c := range []struct {
			name  string
			spec  config.PoolSpec
			nodes []*corev1.Node
			want  string
		}{
			{"before any node is there", spec, nil, "T=81559 driver 0 nodes []"},
			{"its nodes are its own, and it has their lowest driver", spec, []*corev1.Node{mine("n1", "580"), mine("n2", "570")},
				"T=81559 driver 570 nodes [n1 n2]; device memory: declared 81559Mi, and a node's labels say 80Gi"},
			{"a driver that one node does not tell is unknown", spec, []*corev1.Node{mine("n1", "580"), mine("n2", "")},
				"T=81559 driver 0 nodes [n1 n2]; device memory: declared 81559Mi, and a node's labels say 80Gi"},
			{"a declared driver stands", updated, []*corev1.Node{mine("n1", "580")},
				"T=81559 driver 615 nodes [n1]; device memory: declared 81559Mi, and a node's labels say 80Gi"},
			{"what is left open is what the labels say", open, []*corev1.Node{mine("n1", "580")}, "T=81920 driver 580 nodes [n1]"},
			{"labels that disagree leave it open", open, []*corev1.Node{mine("n1", "580"), in(mine("n2", "580"), "nvidia.com/gpu.memory", "40960")},
				"T=0 driver 580 nodes [n1 n2]; device memory: not declared, and the nodes' labels say 80Gi and 40Gi"},
			{"nodes without the resource are not its own", spec, []*corev1.Node{in(labelled("n1"), "pool", "h100")},
				"T=81559 driver 0 nodes []; 1 nodes match the selector, and none of them offers nvidia.com/gpu.shared"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				pools := FromNodes(c.nodes, config.PoolsSpec{Declared: []config.PoolSpec{c.spec}}, nil)
				if len(pools) != 1 {
					t.Fatalf("got %q", digest(pools))
				}
				p := &pools[0]
				got := fmt.Sprintf("T=%d driver %d nodes %v", p.DeviceMemory, p.DriverMajor, nodesOf(p))
				for _, note := range p.Notes {
					got += "; " + note
				}
				if got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				selectsItsNodes(t, p)
			})
		}
		pools := FromNodes([]*corev1.Node{mine("n1", "580")}, config.PoolsSpec{Declared: []config.PoolSpec{other}}, nil)
		if len(pools) != 2 || len(pools[0].Nodes) != 0 || nodesOf(&pools[1])[0] != "n1" {
			t.Errorf("a node that no declaration selects is derived: %q", digest(pools))
		}
	})
	t.Run("keeps what was known of its nodes", func(t *testing.T) {
		t.Parallel()
		spec := config.PoolsSpec{Declared: []config.PoolSpec{{Name: "a", Selector: map[string]string{"pool": "a"},
			Resource: nvidia.SharedGPU, Strategy: "time-slicing", Replicas: 4}}}
		before := FromNodes([]*corev1.Node{in(shared("n1", "4"), "pool", "a")}, spec, nil)
		after := FromNodes(nil, spec, before)
		if len(after) != 1 || after[0].DeviceMemory != 81920 || after[0].DriverMajor != 580 || after[0].Usable() != before[0].Usable() {
			t.Errorf("got %q, before %q", digest(after), digest(before))
		}
	})
}

func TestReserve(t *testing.T) {
	t.Parallel()
	t.Run("what is kept free follows policy", func(t *testing.T) {
		t.Parallel()
		percent, memory := 10, quantity.MiB(1024)
		none, little := 0, quantity.MiB(1)
		for _, c := range []struct {
			name string
			spec config.ReserveSpec
			want quantity.MiB
		}{
			{"the default, the larger of 3 % and 512Mi", config.ReserveSpec{}, 2458},
			{"a larger part", config.ReserveSpec{Percent: &percent}, 8192},
			{"an amount that is less than 3 %", config.ReserveSpec{Memory: &memory}, 2458},
			{"next to nothing", config.ReserveSpec{Percent: &none, Memory: &little}, 1},
		} {
			t.Run(c.name, func(t *testing.T) {
				pools := FromNodes([]*corev1.Node{shared("n1", "4")}, config.PoolsSpec{Reserve: c.spec}, nil)
				if pools[0].Reserve != c.want {
					t.Errorf("got %d, want %d", pools[0].Reserve, c.want)
				}
			})
		}
	})
}

// FuzzPoolsFromNodes gives one node a label and a resource of any kind.
func FuzzPoolsFromNodes(f *testing.F) {
	f.Add("gpu.replicas", "4", "gpu.shared", int64(4))
	f.Add("gpu.memory", "1e400", "gpu", int64(-1))
	f.Add("mig-1g.10gb.memory", "-9728", "mig-1g.10gb", int64(1<<62))
	f.Add("gpu.product", strings.Repeat("x-MIG-", 60), "gpu", int64(1))
	f.Fuzz(func(t *testing.T, key, value, name string, n int64) {
		node := discovered("n1", map[string]int64{name: n, "gpu": 1}, nil)
		node.Labels["nvidia.com/"+key] = value
		for _, p := range FromNodes([]*corev1.Node{node, shared("n2", "4")}, config.PoolsSpec{}, nil) {
			if p.Usable() < 0 || p.Usable()*quantity.MiB(max(p.Replicas, 1)) > max(p.Total(), 0) ||
				p.Replicas < 0 || p.Replicas > quantity.MaxReplicas {
				t.Errorf("%q", digest([]Pool{p}))
			}
			selectsItsNodes(t, &p)
		}
	})
}
