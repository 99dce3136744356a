//go:build cgo

package layout

import (
	"slices"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
)

// TestGeometryOfNVML holds the table to NVIDIA's own of A30 and A100: slices, placements and memory. Its tables of newer devices have
// other placements than the devices, but the same slices.
func TestGeometryOfNVML(t *testing.T) {
	ids := map[string]int{"1g": nvml.GPU_INSTANCE_PROFILE_1_SLICE,
		"2g": nvml.GPU_INSTANCE_PROFILE_2_SLICE, "3g": nvml.GPU_INSTANCE_PROFILE_3_SLICE,
		"4g": nvml.GPU_INSTANCE_PROFILE_4_SLICE, "7g": nvml.GPU_INSTANCE_PROFILE_7_SLICE}
	for product, device := range map[string]gpus.Config{"A30": gpus.A30_PCIE_24GB,
		"A100 40": gpus.A100_SXM4_40GB, "A100 80": gpus.A100_SXM4_80GB,
		"H100": gpus.H100_SXM5_80GB, "H200": gpus.H200_SXM5_141GB, "B200": gpus.B200_SXM5_180GB} {
		g := GeometryOf(product, int64(device.MemoryMB))
		if g == nil {
			t.Errorf("%s has no geometry", product)
			continue
		}
		for i, p := range g.Profiles {
			id := ids[p.Name[:2]]
			if i == 1 && g.Slices == 8 {
				id = nvml.GPU_INSTANCE_PROFILE_1_SLICE_REV2
			}
			theirs := device.MIGProfiles.GpuInstanceProfiles[id]
			if int(theirs.SliceCount) != p.Compute || p.Memory > int64(theirs.MemorySizeMB) {
				t.Errorf("%s: %+v, NVIDIA has %+v", product, p, theirs)
			}
			if product[:2] == "A3" || product[:2] == "A1" {
				var starts []int
				for _, place := range device.MIGProfiles.GpuInstancePlacements[id] {
					starts = append(starts, int(place.Start))
					if int(place.Size) != p.Size {
						t.Errorf("%s: %s has %d memory slices, NVIDIA has %d", product, p.Name, p.Size, place.Size)
					}
				}
				if !slices.Equal(starts, p.Starts) || int64(theirs.MemorySizeMB) != p.Memory {
					t.Errorf("%s: %+v, NVIDIA has %d MiB at %v", product, p, theirs.MemorySizeMB, starts)
				}
			}
		}
	}
}
