package layout

import (
	"testing"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/policies/mig"
)

// TestFit: what gpuslice doctor finds that a device has room for, by sums alone, is what the placements of its instances allow.
func TestFit(t *testing.T) {
	for _, g := range geometries {
		largest, _ := mig.Parse(g.Profiles[len(g.Profiles)-1].Name)
		card := nvidia.MIGCard{Slices: g.Compute, Memory: int64(largest.Gigabytes) << 10}
		legal, illegal := 0, 0
		counts := make([]int, len(g.Profiles))
		var each func(i, left int)
		each = func(i, left int) {
			if i == len(counts) {
				d := nvidia.MIGDevices{Profiles: map[string]int{}}
				for i, n := range counts {
					d.Profiles[g.Profiles[i].Name] = n
				}
				why := d.Exceeds(card)
				if g.Legal(counts) != (why == "") {
					t.Errorf("%s: %v: %q, and the placements say otherwise", g.product, d.Profiles, why)
				}
				if why == "" {
					legal++
				} else {
					illegal++
				}
				return
			}
			for counts[i] = 0; counts[i]*g.Profiles[i].Compute <= left; counts[i]++ {
				each(i+1, left-counts[i]*g.Profiles[i].Compute)
			}
			counts[i] = 0
		}
		each(0, g.Compute+1)
		if legal < 5 || illegal < 4 {
			t.Errorf("%s: %d legal, %d illegal", g.product, legal, illegal)
		}
	}
}
