package draw

import (
	"math"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
)

// TestSums: whatever a fleet is, every device is counted once, every slice is drawn once, and no device holds more than it is.
func TestSums(t *testing.T) {
	for seed := range uint64(60) {
		f := generated(seed, int(seed))
		v := viewOf("now", f)
		devices, drawn := 0, map[int]int{}
		for _, n := range v.Nodes {
			devices += len(n.Devices)
			for _, i := range n.Extra {
				drawn[i]++
			}
			for _, d := range n.Devices {
				share := 0.0
				for _, c := range d.Cells {
					if c.Slice > 0 {
						drawn[c.Slice]++
						share += c.Share
					} else {
						share += c.Share * float64(c.Free)
					}
				}
				if share > 1+1e-6 {
					t.Fatalf("seed %d, node %s: a device of which %g is drawn", seed, n.Name, share)
				}
			}
		}
		s := v.Sums
		if sum := s.Used + s.Unused + s.Unknown + s.Rounding + s.Free + s.Closed; math.Abs(sum-s.Devices) > 1e-6*s.Devices ||
			int(s.Devices) != devices {
			t.Errorf("seed %d: %d devices, and the sums are %g: %+v", seed, devices, sum, s)
		}
		for name, n := range map[string]float64{"used": s.Used, "unused": s.Unused, "unknown": s.Unknown,
			"rounding": s.Rounding, "free": s.Free, "closed": s.Closed} {
			if n < 0 {
				t.Errorf("seed %d: %s %g", seed, name, n)
			}
		}
		held := 0.0
		for _, n := range v.Namespaces {
			held += n.Held
		}
		if math.Abs(held-(s.Used+s.Unused+s.Unknown+s.Rounding)) > 1e-6 {
			t.Errorf("seed %d: namespaces hold %g, of %+v", seed, held, s)
		}
		running := 0
		for i := range f.Pods {
			if f.Pods[i].Node != "" {
				running++
			}
		}
		for i := range v.Slices[1:] {
			if drawn[i+1] != 1 {
				t.Fatalf("seed %d: slice %d is drawn %d times", seed, i+1, drawn[i+1])
			}
		}
		if len(v.Slices)-1 != running || len(v.Pods) != running || len(v.Waiting) != len(f.Pods)-running {
			t.Errorf("seed %d: %d slices of %d pods, %d of them run, %d wait", seed, len(v.Slices)-1, len(f.Pods), running, len(v.Waiting))
		}
	}
}

// TestWants: of a pod that waits, GPUs are listed, and no network cards; what a pool offers is a GPU.
func TestWants(t *testing.T) {
	b := &builder{fleet: &inventory.Fleet{Pools: []inventory.Pool{{Resource: "nvidia.com/special"}}}}
	got := b.wants(&inventory.Pod{Requests: inventory.Resources{
		"cpu": 8000, "nvidia.com/gpu": 2, "nvidia.com/hostdev": 8, "nvidia.com/gpumem": 4000, "nvidia.com/special": 1}})
	if want := "2 of nvidia.com/gpu, 1 of nvidia.com/special"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestView(t *testing.T) {
	shared, whole := models[0], models[1]
	slice := func(name string, memory, peak int64, device string) inventory.Pod {
		s := inventory.Slice{Container: "main", Pool: shared.Name, Resource: shared.Resource, Count: 1, Memory: shared.Slice}
		if memory > 0 {
			s.Memory = shared.Slice / 2
		}
		if device != "" {
			s.Usage = []inventory.Usage{{Device: device, UsedBytes: 1 << 20, PeakBytes: peak << 20}}
		}
		return inventory.Pod{Namespace: "a", Name: name, Node: "n", Phase: "Running", Slices: []inventory.Slice{s}}
	}
	f := inventory.New(at)
	f.Pools = []inventory.Pool{shared, whole}
	f.Nodes = []inventory.Node{
		{Name: "n", GPUs: inventory.GPUs{Count: 2}, Offers: []inventory.Offer{{Pool: shared.Name, Units: 8}}},
		{Name: "cordoned", Unschedulable: true, GPUs: inventory.GPUs{Count: 2}, Offers: []inventory.Offer{{Pool: whole.Name, Units: 1}}},
		{Name: "bare"},
	}
	f.Pods = []inventory.Pod{slice("first", 0, 0, ""), slice("second", 0, int64(shared.Slice), "GPU-b"),
		slice("half", 1, 0, "GPU-a"), slice("third", 0, 0, "GPU-b"),
		{Namespace: "a", Name: "over", Node: "n", Phase: "Succeeded", Requests: inventory.Resources{"nvidia.com/gpu.shared": 1}},
		{Namespace: "a", Name: "elsewhere", Node: "n", Phase: "Running", Requests: inventory.Resources{"nvidia.com/gpu": 1}},
		{Namespace: "b", Name: "waits", Phase: "Pending", Requests: inventory.Resources{"nvidia.com/gpu": 1, "cpu": 5}, Waiting: "no room"},
	}
	v := viewOf("now", f)
	n := v.Nodes[0]
	name := func(c cell) string { return v.Pods[v.Slices[c.Slice].Pod].Name }
	// second and third were measured on one device, half on another; first has the first room
	if d := n.Devices[0].Cells; len(d) != 4 || name(d[0]) != "second" || name(d[1]) != "third" || name(d[2]) != "first" || d[3].Free != 1 {
		t.Errorf("the first device: %+v", d)
	}
	if d := n.Devices[1].Cells; len(d) != 2 || name(d[0]) != "half" || d[1].Free != 3 {
		t.Errorf("the second device: %+v", d)
	}
	if len(n.Extra) != 1 || v.Pods[v.Slices[n.Extra[0]].Pod].Name != "elsewhere" {
		t.Errorf("on no device: %v", n.Extra)
	}
	want := sums{Nodes: 3, Devices: 4, Used: 0.25, Unused: 0.25 + 0.125, Unknown: 0.25, Rounding: 0.125, Free: 1, Closed: 2}
	for what, pair := range map[string][2]float64{"devices": {want.Devices, v.Sums.Devices}, "used": {want.Used, v.Sums.Used},
		"unused": {want.Unused, v.Sums.Unused}, "unknown": {want.Unknown, v.Sums.Unknown},
		"rounding": {want.Rounding, v.Sums.Rounding}, "free": {want.Free, v.Sums.Free}, "closed": {want.Closed, v.Sums.Closed}} {
		if math.Abs(pair[0]-pair[1]) > 1e-3 {
			t.Errorf("%s: %g, want %g", what, pair[1], pair[0])
		}
	}
	if len(v.Waiting) != 1 || v.Waiting[0] != (waiting{"b", "waits", "1 of nvidia.com/gpu", "", "no room"}) {
		t.Errorf("%+v", v.Waiting)
	}
}

// TestUnits: three replicas of a granular pool share one slice; two whole devices each have their own use.
func TestUnits(t *testing.T) {
	f := inventory.New(at)
	f.Pools = []inventory.Pool{{Name: "granular", Resource: "nvidia.com/gpu.shared", DeviceMemory: 8192, Slice: 8192,
		Replicas: 8, Share: 0.125, Granular: true}, models[1]}
	f.Nodes = []inventory.Node{{Name: "n", Offers: []inventory.Offer{{Pool: "granular", Units: 8}, {Pool: models[1].Name, Units: 2}}}}
	usage := func(device string, gib int64) inventory.Usage {
		return inventory.Usage{Device: device, UsedBytes: gib << 30, PeakBytes: gib << 30}
	}
	f.Pods = []inventory.Pod{
		{Namespace: "a", Name: "three", Node: "n",
			Slices: []inventory.Slice{{Container: "c", Pool: "granular", Count: 3, Memory: 3072, Usage: []inventory.Usage{usage("G", 3)}}}},
		{Namespace: "a", Name: "two", Node: "n", Slices: []inventory.Slice{
			{Container: "c", Pool: models[1].Name, Count: 2, Memory: 79872, Usage: []inventory.Usage{usage("A", 78), usage("B", 0)}},
		}},
	}
	v := viewOf("now", f)
	want := sums{Nodes: 1, Devices: 3, Used: 0.375 + 1, Unused: 1, Free: 0.625}
	if v.Sums != want {
		t.Errorf("%+v, want %+v", v.Sums, want)
	}
}

// TestViewBounds: a snapshot that pretends much does not make a page of that size.
func TestViewBounds(t *testing.T) {
	f := inventory.New(at)
	f.Pools = []inventory.Pool{{Name: "p", Resource: "nvidia.com/gpu", Share: 1e-9}}
	f.Nodes = []inventory.Node{{Name: "n", Offers: []inventory.Offer{{Pool: "p", Units: 1 << 20}, {Pool: "p", Units: 1 << 20}}}}
	for range 1000 {
		f.Pods = append(f.Pods, inventory.Pod{Namespace: "a", Name: "b", Node: "n", Requests: inventory.Resources{"nvidia.com/gpu": 1 << 53}})
	}
	v := viewOf("now", f)
	if len(v.Slices) != maxSlices || len(v.Notes) != 1 || len(v.Nodes[0].Extra) != maxSlices-1-maxCells {
		t.Errorf("%d slices, %d beside the devices: %q", len(v.Slices), len(v.Nodes[0].Extra), v.Notes)
	}
}

// hostile is a fleet in which every name tries to run a script.
func hostile() *inventory.Fleet {
	const evil = `</script><script>window.owned=1</script><img src=x onerror=window.owned=2>"'` + "\u2028<!--"
	f := generated(3, 3)
	f.Unread = []string{evil}
	for i := range f.Nodes {
		f.Nodes[i].Name, f.Nodes[i].GPUs.Product = evil+f.Nodes[i].Name, evil
	}
	for i := range f.Pods {
		p := &f.Pods[i]
		p.Namespace, p.Name, p.Owner.Name, p.Waiting = evil, evil+p.Name, evil, evil
		if p.Node != "" {
			p.Node = evil + p.Node
		}
		for j := range p.Slices {
			p.Slices[j].Container, p.Slices[j].Observed = evil, evil
		}
	}
	for i := range f.Quotas {
		f.Quotas[i].Budget, f.Quotas[i].Figures[0].Quota = evil, evil
	}
	return f
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	if err := write(&b, []*view{viewOf("now", hostile())}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := strings.Count(text, "<script"); n != 2 {
		t.Errorf("%d elements of scripts, want those of the page", n)
	}
	for _, bad := range []string{"<img", "http://", "https://", "DATA", "POLICY", "STYLE", "SCRIPT", "<!--"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
	for _, part := range []string{hash(script), hash(style)} {
		if !strings.Contains(text, part) {
			t.Error("the policy does not allow what the page has")
		}
	}
}
