package nvidia

import (
	"cmp"
	"encoding/json"
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
	Slices int    // compute slices: 7, or 4
	Memory int64  // MiB; 0: unknown
	model  string // "H100", of which there may be cards with other amounts of memory
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
	if i := slices.IndexFunc(words, func(w string) bool { return slices.Contains(ofSevenSlices, w) }); i >= 0 {
		return MIGCard{7, memory, words[i]}, true
	}
	switch {
	case slices.Contains(words, "A30"):
		return MIGCard{4, memory, "A30"}, true
	case slices.Contains(words, "RTX") && slices.Contains(words, "PRO") && slices.Contains(words, "6000"):
		return MIGCard{4, memory, "RTX"}, true
	}
	return MIGCard{}, false
}

// filtered are the cards that device filters name by the PCI device: model and memory in GB. The MIG manager's default configuration
// (mig-parted, August 2026) has them all.
var filtered = map[string]struct {
	model  string
	memory int64
}{
	"0X20B010DE": {"A100", 40}, "0X20B110DE": {"A100", 40}, "0X20F110DE": {"A100", 40}, "0X20F610DE": {"A800", 40},
	"0X20B210DE": {"A100", 80}, "0X20B510DE": {"A100", 80}, "0X20F310DE": {"A800", 80}, "0X20F510DE": {"A800", 80},
	"0X20B710DE": {"A30", 24}, "0X233010DE": {"H100", 80}, "0X233110DE": {"H100", 80}, "0X232110DE": {"H100", 94}, "0X233D10DE": {"H100", 96},
	"0X232210DE": {"H800", 80}, "0X232410DE": {"H800", 80}, "0X233A10DE": {"H800", 94}, "0X232910DE": {"H20", 96},
	"0X233510DE": {"H200", 141}, "0X233B10DE": {"H200", 141}, "0X234210DE": {"GH200", 96}, "0X234810DE": {"GH200", 144},
	"0X290110DE": {"B200", 180}, "0X294110DE": {"GB200", 186}, "0X318210DE": {"B300", 269}, "0X31C210DE": {"GB300", 278},
	"0X2BB510DE": {"RTX", 96},
}

// AppliesTo reports whether the MIG manager divides a card as d says; known is false where the filter has devices that are not known here, or
// what is known of the card does not tell. Cards of one model and memory that have several PCI devices are not distinguished.
func (d MIGDevices) AppliesTo(c MIGCard) (applies, known bool) {
	named := d.filter()
	if len(named) == 0 {
		return true, true
	}
	known = c.model != "" && c.Memory > 0
	for _, device := range named {
		f, ok := filtered[strings.ToUpper(device)]
		known = known && ok
		if !ok || f.model != c.model {
			continue
		}
		applies = applies || c.nearest() == f.memory
	}
	return applies, known || applies && c.Memory > 0
}

// filter lists the PCI devices of the device filter; none: all devices are meant.
func (d MIGDevices) filter() (devices []string) {
	var one string
	if json.Unmarshal(d.Filter, &one) == nil && one != "" {
		return []string{one}
	}
	_ = json.Unmarshal(d.Filter, &devices) // check denies all else
	return devices
}

// nearest is the memory in GB of the card of this model that has the nearest.
func (c MIGCard) nearest() (memory int64) {
	least := int64(math.MaxInt64)
	for _, f := range filtered {
		if off := max(f.memory*1024-c.Memory, c.Memory-f.memory*1024); f.model == c.model && off < least {
			least, memory = off, f.memory
		}
	}
	return memory
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

// namesOfSeven are the GB in the names of profiles with 1, 2, 4 and 8 memory parts, of each known card with seven compute slices. The MIG
// manager's default configuration (mig-parted, August 2026) has all but those of the A100 with 64 GB.
var namesOfSeven = [][4]int{
	{5, 10, 20, 40}, {8, 16, 32, 64}, {10, 20, 40, 80}, {12, 24, 47, 94}, {12, 24, 48, 96}, {18, 35, 71, 141}, {18, 36, 72, 144},
	{23, 45, 90, 180}, {23, 47, 93, 186}, {23, 47, 95, 189}, {34, 67, 135, 269}, {35, 70, 139, 278},
}

// ExceedsAll is why a card that the device filter names cannot be divided so or, without a filter, no card that is known
// here; "": they can, or it is not known. Names of profiles tell the memory of the card.
func (d MIGDevices) ExceedsAll() string {
	for _, device := range d.filter() {
		if c, ok := cardOf(device); ok {
			if why := d.Exceeds(c); why != "" {
				return fmt.Sprintf("device-filter %s is the %s with %d GB: %s", device, c.model, c.Memory/1024, why)
			}
		}
	}
	seven, four := d.Exceeds(MIGCard{Slices: 7}), d.Exceeds(MIGCard{Slices: 4})
	switch {
	case len(d.Profiles) == 0 || seven != "" && four != "":
		return seven
	case slices.ContainsFunc(namesOfSeven, func(names [4]int) bool {
		return d.named(names) && d.Exceeds(MIGCard{Slices: 7, Memory: int64(names[3]) * 1024}) == ""
	}):
		return ""
	}
	for p := range d.instances() {
		for _, size := range sizes[4][p.Slices] {
			card := MIGCard{Slices: 4, Memory: int64(p.Gigabytes) * 1024 * 4 / int64(size)}
			if card.hasAll(d) {
				return d.Exceeds(card)
			}
		}
	}
	return "no GPU that is known here has these instances together"
}

// NamesCards reports whether the device filter names cards, and known ones alone.
func (d MIGDevices) NamesCards() bool {
	named := d.filter()
	return len(named) > 0 && !slices.ContainsFunc(named, func(device string) bool { _, ok := cardOf(device); return !ok })
}

// cardOf is the card of a PCI device.
func cardOf(device string) (MIGCard, bool) {
	f, ok := filtered[strings.ToUpper(device)]
	c, _ := MIGCardOf(f.model, f.memory*1024)
	if f.model == "RTX" {
		c, _ = MIGCardOf("RTX PRO 6000", f.memory*1024)
	}
	return c, ok
}

// hasAll reports whether the card has a profile for each of the instances.
func (c MIGCard) hasAll(d MIGDevices) bool {
	for p := range d.instances() {
		if c.parts(p) == 0 {
			return false
		}
	}
	return true
}

// named reports whether a card with seven compute slices and profiles of such names has all of these.
func (d MIGDevices) named(names [4]int) bool {
	for p := range d.instances() {
		if !slices.ContainsFunc(sizes[7][p.Slices], func(size int) bool {
			return names[map[int]int{1: 0, 2: 1, 4: 2, 8: 3}[size]] == p.Gigabytes
		}) {
			return false
		}
	}
	return true
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
