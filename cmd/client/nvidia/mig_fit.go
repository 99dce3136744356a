package nvidia

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/policies/mig"
)

// MIGCard is a GPU that MIG divides.
type MIGCard struct {
	Slices int   // compute slices: 7, or 4
	Memory int64 // MiB; 0: unknown
}

// sizes are the memory parts that an instance of so many compute slices may have, of a GPU's 8 or 4, by the GPU's compute slices. NVIDIA's
// MIG user guide and nvidia-smi mig -lgipp have them.
var sizes = map[int]map[int][]int{
	7: {1: {1, 2}, 2: {2}, 3: {4}, 4: {4}, 7: {8}},
	4: {1: {1}, 2: {2}, 4: {4}},
}

// memoryParts are the parts of a GPU's memory, by its compute slices.
var memoryParts = map[int]int{7: 8, 4: 4}

// ofSevenSlices are the models with seven compute slices, as words of the product.
var ofSevenSlices = []string{"A100", "A800", "H100", "H800", "H200", "H20", "GH200", "B100", "B200", "GB200", "B300", "GB300"}

var productMemory = regexp.MustCompile(`\b([0-9]{1,3})GB\b`)

// MIGCardOf is the card of a product, as labels name it, with so much memory in MiB; false: the model is not known. The product of an
// instance ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb") comes with the instance's memory, so that the card's is taken from its name.
func MIGCardOf(product string, memory int64) (MIGCard, bool) {
	card, _, isInstance := strings.Cut(strings.ToUpper(product), "-MIG-")
	words := strings.FieldsFunc(card, func(r rune) bool { return r == '-' || r == ' ' })
	if isInstance {
		memory = 0
		read := productMemory.FindStringSubmatch(card)
		if read != nil && !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "G") }) { // of GH200 it is the processor's
			memory, _ = strconv.ParseInt(read[1]+"000", 10, 64)
		}
	}
	switch {
	case slices.ContainsFunc(words, func(w string) bool { return slices.Contains(ofSevenSlices, w) }):
		return MIGCard{7, memory}, true
	case slices.Contains(words, "A30"), slices.Contains(words, "RTX") && slices.Contains(words, "PRO") && slices.Contains(words, "6000"):
		return MIGCard{4, memory}, true
	}
	return MIGCard{}, false
}

// Exceeds is why a card cannot be divided so; "": it can. Compute slices and memory parts are counted alone: what has enough of both also
// has places, for the instances of all cards that are known here.
func (d MIGDevices) Exceeds(c MIGCard) string {
	compute, memory, media := 0, 0, 0
	all := d.instances()
	for _, p := range slices.SortedFunc(maps.Keys(all), func(a, b mig.Profile) int {
		return cmp.Or(cmp.Compare(a.Slices, b.Slices), cmp.Compare(a.Gigabytes, b.Gigabytes))
	}) {
		n, size := all[p], c.parts(p)
		if size == 0 {
			return fmt.Sprintf("the GPU has no profile %dg.%dgb", p.Slices, p.Gigabytes)
		}
		compute, memory = compute+n*p.Slices, memory+n*size
		if strings.HasPrefix(p.Attributes, "+me") {
			media += n
		}
	}
	switch {
	case compute > c.Slices:
		return fmt.Sprintf("its instances have %d compute slices, and the GPU has %d", compute, c.Slices)
	case memory > memoryParts[c.Slices]:
		return fmt.Sprintf("its instances have %d parts of the GPU's memory, and there are %d", memory, memoryParts[c.Slices])
	case media > 1:
		return "more than one instance has media extensions (+me)"
	}
	return ""
}

// ExceedsAll is why no card can be divided so; "": one may. The memory of the cards is what the names of the profiles tell.
func (d MIGDevices) ExceedsAll() string {
	seven, four := d.Exceeds(MIGCard{Slices: 7}), d.Exceeds(MIGCard{Slices: 4})
	if len(d.Profiles) == 0 || seven != "" && four != "" {
		return seven
	}
	for p := range d.instances() {
		for of, bySlices := range sizes {
			for _, size := range bySlices[p.Slices] {
				memory := int64(p.Gigabytes) * 1024 * int64(memoryParts[of]) / int64(size)
				if d.Exceeds(MIGCard{of, memory}) == "" {
					return ""
				}
			}
		}
	}
	return "no GPU has these instances together"
}

// ComputeInstances are the profiles of which several share an instance and its memory, such as 1c.3g.40gb.
func (d MIGDevices) ComputeInstances() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(d.Profiles)) {
		if p, ok := mig.Parse(name); ok && p.Compute > 0 && p.Compute < p.Slices && d.Profiles[name] > 0 {
			names = append(names, name)
		}
	}
	return names
}

// maxInstances is more than any card has of one profile.
const maxInstances = 100

// instances are how many of each profile the devices get; compute instances share one where they fit.
func (d MIGDevices) instances() map[mig.Profile]int {
	all := map[mig.Profile]int{}
	for name, n := range d.Profiles {
		p, ok := mig.Parse(name)
		if !ok || n <= 0 {
			continue
		}
		compute := cmp.Or(p.Compute, p.Slices)
		p.Compute = 0
		all[p] += compute * min(n, maxInstances)
	}
	for p, compute := range all {
		all[p] = (compute + p.Slices - 1) / p.Slices
	}
	return all
}

// parts is how many parts of the card's memory an instance has; 0: the card has no such profile.
func (c MIGCard) parts(p mig.Profile) int {
	of := sizes[c.Slices][p.Slices]
	if c.Memory <= 0 {
		return append(slices.Clone(of), 0)[0]
	}
	held := float64(p.Gigabytes) * 1024 * float64(memoryParts[c.Slices]) / float64(c.Memory)
	for _, size := range of {
		if math.Abs(held-float64(size)) <= 0.1*float64(size) { // names are rounded: 1g.18gb of 141 GB
			return size
		}
	}
	return 0
}
