package pools

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/config"
)

// discovered is a node as GPU feature discovery 0.18 labels it: an A100 of 80 GB without sharing, with the given labels
// (of nvidia.com; an empty value takes one away) and resources on top.
func discovered(name string, offers map[string]int64, labels map[string]string) *corev1.Node {
	all := map[string]string{
		"cuda.driver-version.full": "580.95.05", "cuda.driver-version.major": "580", "cuda.driver-version.minor": "95",
		"cuda.driver-version.revision": "05", "cuda.driver.major": "580", "cuda.driver.minor": "95", "cuda.driver.rev": "05",
		"cuda.runtime-version.full": "13.0", "gpu.compute.major": "8", "gpu.compute.minor": "0", "gpu.count": "1",
		"gpu.family": "ampere", "gpu.machine": "unknown", "gpu.memory": "81920", "gpu.mode": "compute",
		"gpu.product": "NVIDIA-A100-SXM4-80GB", "gpu.replicas": "1", "gpu.sharing-strategy": "none",
		"mig.capable": "true", "mps.capable": "false", "vgpu.present": "false", "gfd.timestamp": fmt.Sprint(len(name) + 1700000000),
	}
	maps.Copy(all, labels)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	for key, value := range all {
		if value != "" {
			node.Labels["nvidia.com/"+key] = value
		}
	}
	return offering(node, offers)
}

func offering(node *corev1.Node, offers map[string]int64) *corev1.Node {
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16")}
	for name, n := range offers {
		node.Status.Allocatable[corev1.ResourceName("nvidia.com/"+name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	node.Status.Capacity = node.Status.Allocatable.DeepCopy()
	return node
}

// digest says of pools what their nodes were read as, one line each.
func digest(pools []Pool) []string {
	var lines []string
	for i := range pools {
		p := &pools[i]
		line := fmt.Sprintf("%s %s x%d T=%d usable=%d", strings.TrimPrefix(p.Resource, "nvidia.com/"),
			p.Strategy, p.Replicas, p.DeviceMemory, p.Usable())
		if p.MIGProfile != "" {
			line += fmt.Sprintf(" %s=%d", p.MIGProfile, p.InstanceMemory)
		}
		if p.MPSProvider != "" {
			line += " by " + string(p.MPSProvider)
		}
		for _, note := range p.Notes {
			line += "; " + note
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func migLabels(profile, memory, count, replicas, sharing, product string) map[string]string {
	key := "mig-" + profile + "."
	return map[string]string{"mig.strategy": "mixed", "gpu.replicas": "0", key + "count": count, key + "replicas": replicas,
		key + "sharing-strategy": sharing, key + "product": product, key + "memory": memory, key + "slices.gi": "1"}
}

func both(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func TestPoolsFromNodes(t *testing.T) {
	t.Parallel()
	t.Run("are read from labels and resources", func(t *testing.T) {
		t.Parallel()
		type labels = map[string]string
		mixed := both(migLabels("1g.10gb", "9728", "3", "1", "none", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"),
			migLabels("2g.20gb", "19968", "2", "1", "none", "NVIDIA-A100-SXM4-80GB-MIG-2g.20gb"))
		single := labels{"gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "gpu.memory": "9728", "gpu.count": "7", "mig.strategy": "single"}
		for _, c := range []struct {
			name   string
			offers map[string]int64
			labels labels
			want   []string
		}{
			{"no sharing", map[string]int64{"gpu": 1}, nil, []string{"gpu exclusive x1 T=81920 usable=81920"}},
			{"eight devices, one of them broken", map[string]int64{"gpu": 7}, labels{"gpu.count": "8"},
				[]string{"gpu exclusive x1 T=81920 usable=81920"}},
			{"time-slicing, renamed", map[string]int64{"gpu.shared": 4}, labels{"gpu.replicas": "4", "gpu.sharing-strategy": "time-slicing"},
				[]string{"gpu.shared time-slicing x4 T=81920 usable=19865"}},
			{"time-slicing, not renamed", map[string]int64{"gpu": 4},
				labels{"gpu.replicas": "4", "gpu.sharing-strategy": "time-slicing", "gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED"},
				[]string{"gpu time-slicing x4 T=81920 usable=19865"}},
			{"renamed since the node joined: the old resource stays with 0", map[string]int64{"gpu": 0, "gpu.shared": 4},
				labels{"gpu.replicas": "4", "gpu.sharing-strategy": "time-slicing"},
				[]string{"gpu.shared time-slicing x4 T=81920 usable=19865"}},
			{"MPS of NVIDIA's plugin", map[string]int64{"gpu": 4},
				labels{"gpu.replicas": "4", "gpu.sharing-strategy": "mps", "mps.capable": "true", "gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED"},
				[]string{"gpu mps x4 T=81920 usable=19865 by nvidia-device-plugin"}},
			{"MPS of NVIDIA's plugin, renamed", map[string]int64{"gpu.shared": 4},
				labels{"gpu.replicas": "4", "gpu.sharing-strategy": "mps", "mps.capable": "true"},
				[]string{"gpu.shared mps x4 T=81920 usable=19865 by nvidia-device-plugin"}},
			{"MIG mixed, two profiles", map[string]int64{"gpu": 0, "mig-1g.10gb": 3, "mig-2g.20gb": 2}, mixed,
				[]string{"mig-1g.10gb mig x1 T=81920 usable=9728 1g.10gb=9728", "mig-2g.20gb mig x1 T=81920 usable=19968 2g.20gb=19968"}},
			{"MIG mixed beside whole devices", map[string]int64{"gpu": 1, "mig-1g.10gb": 3, "mig-2g.20gb": 2},
				both(mixed, labels{"gpu.replicas": "1", "gpu.count": "2"}),
				[]string{"gpu exclusive x1 T=81920 usable=81920", "mig-1g.10gb mig x1 T=81920 usable=9728 1g.10gb=9728",
					"mig-2g.20gb mig x1 T=81920 usable=19968 2g.20gb=19968"}},
			{"MIG mixed, instances time-sliced and renamed", map[string]int64{"mig-1g.10gb.shared": 14},
				migLabels("1g.10gb", "9728", "7", "2", "time-slicing", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"),
				[]string{"mig-1g.10gb.shared time-slicing x2 T=81920 usable=4608 1g.10gb=9728"}},
			{"MIG mixed, instances time-sliced, not renamed", map[string]int64{"mig-1g.10gb": 14},
				migLabels("1g.10gb", "9728", "7", "2", "time-slicing", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED"),
				[]string{"mig-1g.10gb time-slicing x2 T=81920 usable=4608 1g.10gb=9728"}},
			{"MIG single: the labels speak of the instance", map[string]int64{"gpu": 7},
				single, []string{"gpu mig x1 T=0 usable=9728 1g.10gb=9728"}},
			{"MIG single, instances time-sliced", map[string]int64{"gpu.shared": 14},
				both(single, labels{"gpu.replicas": "2", "gpu.sharing-strategy": "time-slicing"}),
				[]string{"gpu.shared time-slicing x2 T=0 usable=4608 1g.10gb=9728"}},
			{"MIG single, and the devices are cut differently", map[string]int64{"gpu": 1},
				labels{"gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-INVALID", "gpu.memory": "0",
					"gpu.count": "0", "gpu.replicas": "0", "mig.strategy": "single"},
				[]string{`gpu  x0 T=0 usable=0 INVALID=0; label nvidia.com/gpu.sharing-strategy says "none", and nvidia.com/gpu.replicas 0; MIG strategy single, and the node's GPUs are not all cut into one profile`}},
			{"discovery from before sharing-strategy", map[string]int64{"gpu": 4},
				labels{"gpu.replicas": "4", "gpu.sharing-strategy": "", "cuda.driver-version.major": "", "cuda.driver-version.minor": ""},
				[]string{"gpu time-slicing x4 T=81920 usable=19865"}},
			{"no size told", map[string]int64{"gpu": 1}, labels{"gpu.memory": ""}, []string{"gpu exclusive x1 T=0 usable=0"}},
			{"other resources are not ours", map[string]int64{"pgpu": 1, "gpu-memory": 5, "mig-": 1}, nil, nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				pools := FromNodes([]*corev1.Node{discovered("n1", c.offers, c.labels)}, config.PoolsSpec{}, nil)
				if diff := cmp.Diff(c.want, digest(pools)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				for i := range pools {
					if pools[i].Site != pools[0].Site {
						t.Errorf("one node, two sites: %v", pools)
					}
					selectsItsNodes(t, &pools[i])
				}
			})
		}
	})
	t.Run("of other clusters", func(t *testing.T) {
		t.Parallel()
		gke := func(pairs ...string) *corev1.Node {
			return offering(labelled("n1", append(pairs, labelGKEAccelerator, "nvidia-l4")...), map[string]int64{"gpu": 4})
		}
		for _, c := range []struct {
			name string
			node *corev1.Node
			want string
		}{
			{"GKE without sharing", gke(), "gpu exclusive x1 T=23034 usable=23034"},
			{"GKE with time-sharing", gke(labelGKESharing, "time-sharing", labelGKEClients, "4"), "gpu time-slicing x4 T=23034 usable=5585"},
			{"GKE with time-sharing of an unknown number", gke(labelGKESharing, "time-sharing"),
				"gpu  x0 T=23034 usable=0; label cloud.google.com/gke-max-shared-clients-per-gpu does not tell how many share one of its GPUs"},
			{"GKE with MIG", gke(labelGKEPartition, "1g.5gb"), "gpu mig x1 T=23034 usable=0 1g.5gb=0"},
			{"GKE with MPS", gke(labelGKESharing, "mps", labelGKEClients, "4"), "gpu mps x4 T=23034 usable=5585 by gke"},
			{"GKE with MPS of an unknown number", gke(labelGKESharing, "mps"),
				"gpu  x0 T=23034 usable=0; label cloud.google.com/gke-max-shared-clients-per-gpu does not tell how many share one of its GPUs"},
			{"GKE with MPS on MIG", gke(labelGKESharing, "mps", labelGKEClients, "4", labelGKEPartition, "1g.5gb"),
				"gpu  x0 T=23034 usable=0 1g.5gb=0; label cloud.google.com/gke-gpu-sharing-strategy says mps, which is not shared on a MIG instance"},
			{"GKE with another way", gke(labelGKESharing, "magic"),
				`gpu  x0 T=23034 usable=0; label cloud.google.com/gke-gpu-sharing-strategy: sharing by "magic" on GKE is not known to this build`},
			{"GKE with another device plugin", gke(labelGKENoPlugin, "true"),
				"gpu  x1 T=23034 usable=0; label gke-no-default-nvidia-gpu-device-plugin: another device plugin than GKE's shares its GPUs, " +
					"and no label shows how: deploy GPU feature discovery, or declare the pool"},
			{"GKE with its number of GPUs", gke(labelGKECount, "4"), "gpu exclusive x1 T=23034 usable=23034"},
			{"GKE with more than its number of GPUs", gke(labelGKECount, "2"),
				"gpu  x1 T=23034 usable=0; the node has 4 of nvidia.com/gpu, more than its labels show (cloud.google.com/gke-accelerator-count x clients): " +
					"shared by something else than GKE's device plugin?"},
			{"no labels at all", offering(labelled("n1"), map[string]int64{"gpu": 2}),
				"gpu  x0 T=0 usable=0; no label shows how its GPUs are shared: deploy GPU feature discovery, or declare the pool"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				if diff := cmp.Diff([]string{c.want}, digest(FromNodes([]*corev1.Node{c.node}, config.PoolsSpec{}, nil))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	})
	t.Run("labels that contradict each other have no meaning", func(t *testing.T) {
		t.Parallel()
		type labels = map[string]string
		for _, c := range []struct {
			name   string
			offers map[string]int64
			labels labels
			note   string
		}{
			{"a shared resource that is said not to be shared", map[string]int64{"gpu.shared": 4},
				nil, "named nvidia.com/gpu.shared, but label nvidia.com/gpu.sharing-strategy reports it as not shared"},
			{"replicas of what is not shared", map[string]int64{"gpu": 4}, labels{"gpu.replicas": "4"},
				`sharing-strategy says "none", and nvidia.com/gpu.replicas 4`},
			{"one replica of what is shared", map[string]int64{"gpu": 1}, labels{"gpu.sharing-strategy": "time-slicing"}, "replicas 1"},
			{"a product of before the renaming", map[string]int64{"gpu.shared": 4},
				labels{"gpu.replicas": "4", "gpu.sharing-strategy": "time-slicing", "gpu.product": "T4-SHARED"}, "sharing did not rename it"},
			{"a product of before the sharing ended", map[string]int64{"gpu": 1}, labels{"gpu.product": "T4-SHARED"}, "says SHARED"},
			{"MPS on MIG", map[string]int64{"mig-1g.10gb": 4},
				migLabels("1g.10gb", "9728", "2", "2", "mps", "A100-MIG-1g.10gb"), "does not offer on MIG"},
			{"MPS on a node that is not capable", map[string]int64{"gpu": 4},
				labels{"gpu.replicas": "4", "gpu.sharing-strategy": "mps"}, "mps.capable false"},
			{"an unknown way to share", map[string]int64{"gpu": 4},
				labels{"gpu.replicas": "4", "gpu.sharing-strategy": "exclusive"}, `"exclusive" does not tell`},
			{"replicas that are no number", map[string]int64{"gpu": 4},
				labels{"gpu.replicas": "four", "gpu.sharing-strategy": "time-slicing"}, `"four" is not a number from 0 to 4096`},
			{"more replicas than any device has", map[string]int64{"gpu": 4},
				labels{"gpu.replicas": "99999999999999999999", "gpu.sharing-strategy": "time-slicing"}, "is not a number"},
			{"an Arabic-Indic digit", map[string]int64{"gpu": 4},
				labels{"gpu.replicas": "٤", "gpu.sharing-strategy": "time-slicing"}, "is not a number"},
			{"GPUs of several kinds: the labels tell of one", map[string]int64{"gpu": 3},
				nil, "the node has 3 of nvidia.com/gpu, more than its labels show"},
			{"MIG instances without a label", map[string]int64{"mig-1g.10gb": 7}, labels{"mig.strategy": "mixed"}, "no label shows"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				pools := FromNodes([]*corev1.Node{discovered("n1", c.offers, c.labels)}, config.PoolsSpec{}, nil)
				if len(pools) != 1 || pools[0].Strategy != "" || pools[0].Usable() != 0 {
					t.Fatalf("got %q", digest(pools))
				}
				if notes := strings.Join(pools[0].Notes, "; "); !strings.Contains(notes, c.note) {
					t.Errorf("notes %q; want %q", notes, c.note)
				}
			})
		}
	})
}

// selectsItsNodes checks that a pool's requirements hold for each of its nodes, and that each could be an affinity.
func selectsItsNodes(t *testing.T, p *Pool) {
	t.Helper()
	if len(p.Requirements) == 0 {
		return
	}
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: p.Requirements}},
	})
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	for _, kind := range p.Nodes {
		if !selector.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: kind.Labels}}) {
			t.Errorf("%s: %v does not select %v", p.Name, p.Requirements, kind.Labels)
		}
	}
	for _, r := range p.Requirements {
		if namesNode(r.Key) {
			t.Errorf("%s requires %s, which only names a node", p.Name, r.Key)
		}
	}
}

func TestAgents(t *testing.T) {
	t.Parallel()
	node := func(name string, guarded int64) *corev1.Node {
		n := discovered(name, map[string]int64{"gpu": 1}, nil)
		n.Status.Capacity[limits.GuardedResource] = *resource.NewQuantity(guarded, resource.DecimalSI)
		return n
	}
	one := func(nodes ...*corev1.Node) Pool { return FromNodes(nodes, config.PoolsSpec{}, nil)[0] }
	whole, mixed := one(node("a", 1024), node("b", 1024)), one(node("a", 1024), node("b", 0))
	remembered := FromNodes(nil, config.PoolsSpec{}, []Pool{whole})[0]
	for name, c := range map[string]struct {
		pool Pool
		mode string
		want bool
	}{
		"each node has an agent": {whole, "", true}, "and policy says so": {whole, "auto", true},
		"and policy wants a sidecar": {whole, "sidecar", false},
		"a node has none":            {mixed, "auto", false},
		"and policy wants an agent":  {mixed, "agent", true},
		"there is no node now":       {remembered, "", false},
	} {
		if got := c.pool.GuardedByAgents(c.mode); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTwoModels: labels of a node with two models describe one of them, and a minute later the other; its pool stays what it is.
func TestTwoModels(t *testing.T) {
	t.Parallel()
	var pools []Pool
	for _, labels := range []map[string]string{
		{"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.count": "6", "nvidia.com/gpu.memory": "23034", "nvidia.com/gpu.replicas": "1"},
		{"nvidia.com/gpu.product": "NVIDIA-A100-PCIE-40GB", "nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "40960", "nvidia.com/gpu.replicas": "1"},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}}
		pools = append(pools, OfferOf(node, "nvidia.com/gpu"))
	}
	if a, b := offerKey(&pools[0]), offerKey(&pools[1]); a != b || pools[0].Strategy != "" {
		t.Errorf("the offers differ, or promise something: %s and %s", a, b)
	}
}
