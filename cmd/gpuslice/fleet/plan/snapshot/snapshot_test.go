package snapshot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
)

var taken = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// fixture is a cluster with a whole and a time-sliced node of A100, one of MIG and one that is cordoned.
func fixture() *inventory.Fleet {
	f := inventory.New(taken)
	gpu := inventory.GPUs{Product: "NVIDIA-A100-SXM4-80GB", Count: 2, Memory: 81920, MIG: true}
	f.Pools = []inventory.Pool{
		{Name: "whole", Resource: "nvidia.com/gpu", Strategy: "exclusive", Product: gpu.Product, DeviceMemory: 81920, Replicas: 1},
		{Name: "shared", Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing", Product: gpu.Product, DeviceMemory: 81920, Replicas: 4},
		{Name: "mig", Resource: "nvidia.com/mig-1g.10gb", Strategy: "mig", Product: gpu.Product, DeviceMemory: 81920,
			InstanceMemory: 9856, Replicas: 1, MIGProfile: "1g.10gb"},
	}
	node := func(name, resource, pool string, units int64) inventory.Node {
		return inventory.Node{Name: name, Labels: map[string]string{"zone": name},
			GPUs: gpu, Allocatable: inventory.Resources{"cpu": 64000, "memory": 256 << 30, "pods": 110, resource: units},
			Others: inventory.Resources{"cpu": 1000, "memory": 1 << 30, "pods": 10}, Offers: []inventory.Offer{{Pool: pool, Units: units}}}
	}
	f.Nodes = []inventory.Node{node("a", "nvidia.com/gpu", "whole", 2), node("b", "nvidia.com/gpu.shared", "shared", 8),
		node("c", "nvidia.com/mig-1g.10gb", "mig", 14), node("d", "nvidia.com/gpu", "whole", 2)}
	f.Nodes[3].Unschedulable = true
	return f
}

func with(f *inventory.Fleet, p inventory.Pod, resource string, count int64) {
	p.Namespace, p.Created = "team", taken.Add(-time.Hour)
	p.Name = fmt.Sprint("p", len(f.Pods))
	p.Requests = inventory.Resources{"cpu": 500, "memory": 1<<30 + 1, resource: count}
	f.Pods = append(f.Pods, p)
}

func TestRead(t *testing.T) {
	f := fixture()
	with(f, inventory.Pod{Node: "a", Phase: corev1.PodRunning}, "nvidia.com/gpu", 2)
	with(f, inventory.Pod{Node: "b", Phase: corev1.PodRunning}, "nvidia.com/gpu.shared", 1)
	with(f, inventory.Pod{Node: "c", Phase: corev1.PodRunning}, "nvidia.com/mig-1g.10gb", 1)
	with(f, inventory.Pod{Phase: corev1.PodPending, NodeSelector: map[string]string{"zone": "a"}}, "nvidia.com/gpu", 1)
	with(f, inventory.Pod{Node: "b", Phase: corev1.PodRunning,
		Slices: []inventory.Slice{{Pool: "shared", Memory: 8192, Strategy: "time-slicing"}}}, "nvidia.com/gpu.shared", 1)
	with(f, inventory.Pod{Phase: corev1.PodSucceeded}, "nvidia.com/gpu", 1)
	with(f, inventory.Pod{Phase: corev1.PodRunning}, "nvidia.com/none", 0)
	got, notes := Read(f, Options{Sizes: Requested, Peak: Max})
	if len(got.Nodes) != 3 || got.Devices() != 6 || len(notes) < 1 {
		t.Errorf("%d nodes with %d devices, %q", len(got.Nodes), got.Devices(), notes)
	}
	want := []string{"2 1000 0 false 1", "1 250 0 false 2", "1 1 9856 true 3", "1 1000 0 false 0", "1 1 8192 false 2"}
	for i, p := range got.Pods {
		if text := fmt.Sprint(p.Devices, p.Share, p.DeviceMemory, p.Isolated, p.Node); i >= len(want) || text != want[i] {
			t.Errorf("pod %d: %s", i, text)
		}
	}
	if len(got.Pods) != len(want) {
		t.Fatalf("%d pods, want %d", len(got.Pods), len(want))
	}
	if p := &got.Pods[3]; !p.MayUse(got.Nodes[0].Kind) || p.MayUse(got.Nodes[1].Kind) {
		t.Errorf("the node selector allows %v", p.Allowed)
	}
	if k := got.Kinds[got.Nodes[0].Kind]; k.CPU != 63000 || k.Memory != 255<<10 || k.Pods != 100 {
		t.Errorf("%+v", k)
	}
	if today := got.Today(); today["NVIDIA-A100-SXM4-80GB"] != 4 || today[""] != 1 {
		t.Errorf("today %v", today)
	}
}

// TestReadFullNode: a node that other pods fill takes none, and one whose limit is unknown takes any number.
func TestReadFullNode(t *testing.T) {
	f := fixture()
	f.Nodes[0].Others["pods"] = f.Nodes[0].Allocatable["pods"]
	delete(f.Nodes[1].Allocatable, "pods")
	got, _ := Read(f, Options{Sizes: Requested, Peak: Max})
	if full, unknown := got.Kinds[got.Nodes[0].Kind].Pods, got.Kinds[got.Nodes[1].Kind].Pods; full >= 0 || unknown != 0 {
		t.Errorf("full: %d, unknown: %d", full, unknown)
	}
}

// TestReadModel: a pod that waits is bound to the model that it demands, however GPUs of it are shared today.
func TestReadModel(t *testing.T) {
	const product = "nvidia.com/gpu.product"
	in := func(operator corev1.NodeSelectorOperator, value string) *corev1.Affinity {
		terms := []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: product, Operator: operator, Values: []string{value}}}},
		}
		return &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}},
		}
	}
	for name, c := range map[string]struct {
		pod  inventory.Pod
		want string // a, b and c
	}{
		"selector":              {inventory.Pod{NodeSelector: map[string]string{product: "NVIDIA-L4"}}, "true false false"},
		"selector, shared":      {inventory.Pod{NodeSelector: map[string]string{product: "NVIDIA-A100-SXM4-80GB-SHARED"}}, "false true true"},
		"affinity":              {inventory.Pod{Affinity: in(corev1.NodeSelectorOpIn, "NVIDIA-L4")}, "true false false"},
		"affinity, an instance": {inventory.Pod{Affinity: in(corev1.NodeSelectorOpIn, "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb")}, "false true true"},
		"no shared GPU":         {inventory.Pod{Affinity: in(corev1.NodeSelectorOpNotIn, "NVIDIA-A100-SXM4-80GB-SHARED")}, "true true true"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture()
			for i, model := range []string{"NVIDIA-L4", "NVIDIA-A100-SXM4-80GB-SHARED", "NVIDIA-A100-SXM4-80GB"} {
				f.Nodes[i].Labels[product] = model
			}
			with(f, c.pod, "nvidia.com/gpu", 1)
			got, _ := Read(f, Options{Sizes: Requested, Peak: Max})
			p := &got.Pods[0]
			if text := fmt.Sprint(p.MayUse(got.Nodes[0].Kind), p.MayUse(got.Nodes[1].Kind), p.MayUse(got.Nodes[2].Kind)); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
		})
	}
}

func TestReadObserved(t *testing.T) {
	f := fixture()
	half := 0.5
	with(f, inventory.Pod{Node: "a", Phase: corev1.PodRunning,
		Slices: []inventory.Slice{{Pool: "whole", Strategy: "exclusive", Usage: []inventory.Usage{{PeakBytes: 10 << 30, Utilization: &half}}}}},
		"nvidia.com/gpu", 1)
	got, _ := Read(f, Options{Sizes: Observed, Peak: Max})
	if p := got.Pods[0]; !p.Part() || p.DeviceMemory != 10240+1024+1 || p.Share != 625 {
		t.Errorf("%+v", p)
	}
	got, _ = Read(f, Options{Sizes: Requested, Peak: Max})
	if p := got.Pods[0]; p.Part() {
		t.Errorf("%+v", p)
	}
}

// TestReadFullDevice: no size is beyond the device that a pod has, or beyond the largest that it may get.
func TestReadFullDevice(t *testing.T) {
	beyond := func(*inventory.Pod) (int64, bool) { return 90000, true }
	for name, c := range map[string]struct {
		sizes, node string
		want        int64
	}{"observed": {Observed, "a", 81920}, "recommended": {Recommended, "a", 81920}, "waits": {Recommended, "", 40960}} {
		t.Run(name, func(t *testing.T) {
			f := fixture()
			p := inventory.Pod{Node: c.node, Phase: corev1.PodRunning}
			if c.node == "" {
				f.Nodes[1].GPUs.Memory, p.NodeSelector = 40960, map[string]string{"zone": "b"}
			} else {
				p.Slices = []inventory.Slice{{Pool: "whole", Strategy: "exclusive", Usage: []inventory.Usage{{PeakBytes: 78 << 30}}}}
			}
			with(f, p, "nvidia.com/gpu", 1)
			got, _ := Read(f, Options{Sizes: c.sizes, Peak: Max, Recommend: beyond})
			if p := &got.Pods[0]; p.DeviceMemory != c.want || got.FitsNowhere(p) {
				t.Errorf("%d MiB, want %d: %s", p.DeviceMemory, c.want, got.Reason(p))
			}
		})
	}
}

// TestReadRecommended: a pod's samples count first, then a table for its peak since it started; neither goes beyond the device, and a pod
// that may take what it is given keeps what it requests.
func TestReadRecommended(t *testing.T) {
	for name, c := range map[string]struct {
		hours     float64
		peak      int64 // GiB
		recommend func(*inventory.Pod) (int64, bool)
		want      string // share, MiB
		note      string
	}{
		"six hours":          {6, 10, nil, "1 15361", noteTable},
		"half an hour":       {0.5, 10, nil, "1000 0", noteSize},
		"no use":             {6, 0, nil, "1000 0", noteSize},
		"most of the device": {6, 60, nil, "1000 0", noteSize},
		"above the device":   {6, 55, nil, "1 81920", noteTable},
		"samples":            {6, 10, func(*inventory.Pod) (int64, bool) { return 12345, true }, "1 12345", ""},
		"samples, no size":   {6, 10, func(*inventory.Pod) (int64, bool) { return 0, true }, "1000 0", noteSize},
		"others' samples":    {6, 10, func(*inventory.Pod) (int64, bool) { return 0, false }, "1 15361", noteTable},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture()
			usage := []inventory.Usage{{PeakBytes: c.peak << 30}}
			with(f, inventory.Pod{Node: "a", Phase: corev1.PodRunning, Bound: taken.Add(-time.Duration(c.hours * float64(time.Hour))),
				Slices: []inventory.Slice{{Pool: "whole", Strategy: "exclusive", Usage: usage}}}, "nvidia.com/gpu", 1)
			got, notes := Read(f, Options{Sizes: Recommended, Peak: Max, Recommend: c.recommend})
			if p := got.Pods[0]; fmt.Sprint(p.Share, p.DeviceMemory) != c.want {
				t.Errorf("%d thousandths, %d MiB, want %s", p.Share, p.DeviceMemory, c.want)
			}
			for _, note := range []string{noteTable, noteSize} {
				if strings.Contains(strings.Join(notes, "\n"), fmt.Sprintf(note, 1)) != (note == c.note) {
					t.Errorf("%q", notes)
				}
			}
		})
	}
}

func TestPeak(t *testing.T) {
	f := fixture()
	with(f, inventory.Pod{Node: "a", Phase: corev1.PodRunning}, "nvidia.com/gpu", 1)
	with(f, inventory.Pod{Node: "a", Phase: corev1.PodSucceeded}, "nvidia.com/gpu", 2)
	f.Pods[0].Created = taken.Add(-100 * time.Minute)
	f.Pods[1].Created, f.Pods[1].Ended = taken.Add(-50*time.Minute), taken.Add(-49*time.Minute)
	for which, want := range map[string]int{Max: 2, P95: 1, Min: 1} {
		if got, _ := Read(f, Options{Peak: which, Sizes: Requested}); len(got.Pods) != want {
			t.Errorf("%s: %d pods, want %d", which, len(got.Pods), want)
		}
	}
	with(f, inventory.Pod{Node: "a", Phase: corev1.PodRunning}, "nvidia.com/gpu", 1)
	f.Pods[2].Created = taken.Add(-10 * time.Minute)
	if got, _ := Read(f, Options{Peak: Max, Sizes: Requested}); len(got.Pods) != 2 || got.Nodes[0].Running != 2 {
		t.Errorf("%d pods at the peak, %d on the node now", len(got.Pods), got.Nodes[0].Running)
	}
}
