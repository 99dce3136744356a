package layout

import (
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
)

// Profile is a MIG profile of a device.
type Profile struct {
	Name    string
	Compute int   // slices
	Size    int   // memory slices
	Starts  []int // the memory slices at which an instance may begin
	Memory  int64 // MiB
}

// Geometry lists the MIG profiles of devices of one model: in the order of their sizes, those with the least compute
// first.
type Geometry struct {
	Slices, Compute int
	Profiles        []Profile
}

// sevenths are the placements of devices with seven compute and eight memory slices; thirds of A30. NVIDIA's MIG user guide and
// nvidia-smi mig -lgipp have them, and go-nvml's mock devices for A100 and A30, to which a test holds this table.
func sevenths(gigabytes [5]string, memory [5]int64) *Geometry {
	return &Geometry{8, 7, []Profile{
		{"1g." + gigabytes[0], 1, 1, []int{0, 1, 2, 3, 4, 5, 6}, memory[0]},
		{"1g." + gigabytes[1], 1, 2, []int{0, 2, 4, 6}, memory[1]},
		{"2g." + gigabytes[1], 2, 2, []int{0, 2, 4}, memory[1]},
		{"3g." + gigabytes[2], 3, 4, []int{0, 4}, memory[2]},
		{"4g." + gigabytes[3], 4, 4, []int{0}, memory[3]},
		{"7g." + gigabytes[4], 7, 8, []int{0}, memory[4]},
	}}
}

// geometries are by a part of a product's name, and the least memory of the device in MiB. Memory of instances is
// go-nvml's for A30 and A100; H100 has at least that of A100, and larger devices at least 95 per cent of their slices.
var geometries = []struct {
	product string
	atLeast int64
	*Geometry
}{
	{"A30", 20_000, &Geometry{4, 4,
		[]Profile{{"1g.6gb", 1, 1, []int{0, 1, 2, 3}, 5836}, {"2g.12gb", 2, 2, []int{0, 2}, 11672}, {"4g.24gb", 4, 4, []int{0}, 23344}}}},
	{"A100", 70_000, eighty},
	{"A100", 30_000, sevenths([5]string{"5gb", "10gb", "20gb", "20gb", "40gb"}, [5]int64{4864, 9856, 19968, 19968, 40192})},
	{"H100", 70_000, eighty},
	{"H200", 130_000, sevenths([5]string{"18gb", "35gb", "71gb", "71gb", "141gb"}, [5]int64{16384, 33280, 68096, 68096, 136192})},
	{"B200", 170_000, sevenths([5]string{"23gb", "45gb", "90gb", "90gb", "180gb"}, [5]int64{21888, 43776, 87552, 87552, 175104})},
}

var eighty = sevenths([5]string{"10gb", "20gb", "40gb", "40gb", "80gb"}, [5]int64{9856, 19968, 40192, 40192, 80384})

// GeometryOf lists the MIG profiles of a device; nil: its model is not in the table.
func GeometryOf(product string, memory int64) *Geometry {
	words := strings.FieldsFunc(strings.ToUpper(product), func(r rune) bool { return r == '-' || r == ' ' })
	for _, g := range geometries {
		if slices.Contains(words, g.product) && memory >= g.atLeast {
			return g.Geometry
		}
	}
	return nil
}

// Index is that of a profile by its name; -1: there is none, or no geometry.
func (g *Geometry) Index(profile string) int {
	if g == nil {
		return -1
	}
	return slices.IndexFunc(g.Profiles, func(p Profile) bool { return p.Name == profile })
}

// geometryOf lists the MIG profiles of a kind's devices; nil: they cannot be divided.
func geometryOf(k *demand.Kind) *Geometry {
	if !k.MIG {
		return nil
	}
	return GeometryOf(k.Model, k.DeviceMemory)
}

// smallest is the index of the smallest profile with as much memory (MiB; 0: by share) and as large a share in thousandths; -1: none.
func (g *Geometry) smallest(memory int64, share int) int {
	return slices.IndexFunc(g.Profiles, func(p Profile) bool {
		return p.Memory >= memory && (p.Size*1000 >= share*g.Slices || p.Size == g.Slices)
	})
}

// Legal reports whether a device can have so many instances of each profile at once.
func (g *Geometry) Legal(counts []int) bool {
	compute := 0
	for i, n := range counts {
		compute += n * g.Profiles[i].Compute
	}
	return compute <= g.Compute && g.place(counts, len(counts)-1, 0, 0, 0)
}

// place finds room for the instances that are left of profile i and those before it; those already placed of profile i begin before
// start, and taken are the memory slices that are not free.
func (g *Geometry) place(counts []int, i, placed, start int, taken uint) bool {
	for i >= 0 && placed == counts[i] {
		i, placed, start = i-1, 0, 0
	}
	if i < 0 {
		return true
	}
	p := &g.Profiles[i]
	for s, at := range p.Starts[min(start, len(p.Starts)):] {
		mask := uint(1<<p.Size-1) << at
		if taken&mask == 0 && g.place(counts, i, placed+1, start+s+1, taken|mask) {
			return true
		}
	}
	return false
}
