package layout

import (
	"math/rand/v2"
	"testing"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
)

// TestLegal has geometries of NVIDIA's MIG user guide for devices with seven compute slices, and what is none.
func TestLegal(t *testing.T) {
	g := GeometryOf("NVIDIA-A100-SXM4-80GB", 81920)
	for _, c := range []struct {
		counts []int // 1g, 1g with more memory, 2g, 3g, 4g, 7g
		legal  bool
	}{
		{[]int{7, 0, 0, 0, 0, 0}, true}, {[]int{8, 0, 0, 0, 0, 0}, false}, {[]int{0, 4, 0, 0, 0, 0}, true}, {[]int{1, 4, 0, 0, 0, 0}, false},
		{[]int{1, 0, 3, 0, 0, 0}, true}, {[]int{0, 0, 4, 0, 0, 0}, false}, {[]int{0, 0, 0, 2, 0, 0}, true}, {[]int{1, 0, 0, 2, 0, 0}, false},
		{[]int{0, 0, 0, 1, 1, 0}, true}, {[]int{3, 0, 0, 0, 1, 0}, true}, {[]int{4, 0, 0, 1, 0, 0}, true}, {[]int{0, 0, 0, 0, 2, 0}, false},
		{[]int{0, 0, 0, 0, 0, 1}, true}, {[]int{1, 0, 0, 0, 0, 1}, false}, {[]int{1, 0, 1, 0, 1, 0}, true}, {[]int{0, 1, 0, 1, 1, 0}, false},
	} {
		if got := g.Legal(c.counts); got != c.legal {
			t.Errorf("%v is legal: %t, want %t", c.counts, got, c.legal)
		}
	}
	for product, memory := range map[string]int64{"NVIDIA-A100X": 81920, "Tesla-T4": 15360, "NVIDIA-A100-SXM4-80GB": 0, "": 81920} {
		if GeometryOf(product, memory) != nil {
			t.Errorf("%q with %d MiB has a geometry", product, memory)
		}
	}
	if g := GeometryOf("NVIDIA-A30", 24576); g == nil || !g.Legal([]int{2, 1, 0}) || g.Legal([]int{3, 1, 0}) {
		t.Error("A30 is divided otherwise")
	}
}

// fewest is the smallest number of devices for parts with equal replicas, by trying all.
func fewest(shares []int) int {
	best := len(shares)
	var try func(i int, bins [][]int)
	try = func(i int, bins [][]int) {
		if len(bins) >= best {
			return
		}
		if i == len(shares) {
			best = len(bins)
			return
		}
		for b := range bins {
			largest := shares[i]
			for _, s := range bins[b] {
				largest = max(largest, s)
			}
			if largest*(len(bins[b])+1) <= demand.Whole && len(bins[b]) < MaxReplicas {
				bins[b] = append(bins[b], shares[i])
				try(i+1, bins)
				bins[b] = bins[b][:len(bins[b])-1]
			}
		}
		try(i+1, append(bins, []int{shares[i]}))
	}
	try(0, nil)
	return best
}

// TestPackIsBest holds packing and bound to the best of small fleets, found by trying all.
func TestPackIsBest(t *testing.T) {
	worse := 0
	const fleets = 200
	for seed := range uint64(fleets) {
		random := rand.New(rand.NewPCG(seed, 2))
		f := &demand.Fleet{Kinds: []demand.Kind{{Model: "G2", Devices: 8, CPU: 96000, Memory: 1 << 20}}}
		f.Add("n", 0)
		var shares []int
		for range 1 + random.IntN(8) {
			shares = append(shares, 50*(1+random.IntN(12)))
			f.Pods = append(f.Pods, demand.Pod{Devices: 1, Share: shares[len(shares)-1]})
		}
		fam := Families{Replicas: AllReplicas(), Shared: TimeSlicing}
		got, bound, best := Pack(f, fam).Devices(), Bound(f, fam), fewest(shares)
		if bound > best || got < best {
			t.Errorf("seed %d: packed %d, bound %d, best %d of %v", seed, got, bound, best, shares)
		}
		if got > best {
			worse++
		}
	}
	if worse > fleets/50 {
		t.Errorf("packing needs more devices than the best in %d of %d fleets", worse, fleets)
	}
}
