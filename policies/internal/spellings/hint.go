package spellings

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Label is a label of gpuslice's and its value.
type Label struct{ Name, Value string }

// Labels are the part in gpuslice's words, the number of devices left out.
func (p Part) Labels() (out []Label) {
	add := func(name, value string, named bool) {
		if named {
			out = append(out, Label{name, value})
		}
	}
	add(api.LabelMemory, p.Size.Memory.String(), p.Size.Memory != 0)
	add(api.LabelMemoryLimit, p.Size.MemoryLimit.String(), p.Size.MemoryLimit != 0)
	add(api.LabelFraction, p.Size.Fraction.String(), !p.Size.Fraction.Zero())
	add(api.LabelCompute, strconv.Itoa(p.Size.Compute), p.Size.Compute != 0)
	add(api.LabelStrategy, string(p.Strategy), p.Strategy != "")
	return out
}

// instead is the spelling of the part in gpuslice; "": it cannot be read.
func (p Part) instead() string {
	var words, labels []string
	if p.GPUs > 0 {
		words = append(words, fmt.Sprintf("%s: %d", api.ResourceGPU, p.GPUs))
	}
	for _, l := range p.Labels() {
		labels = append(labels, fmt.Sprintf("%s: %q", l.Name, l.Value))
	}
	switch len(labels) {
	case 0:
	case 1:
		words = append(words, "the label "+labels[0])
	default:
		words = append(words, "the labels "+strings.Join(labels, ", "))
	}
	return strings.Join(words, " and ")
}

// Hint is the remedy for a request that is not accepted.
func (f Found) Hint() string {
	if len(f.Names) == 0 {
		return fmt.Sprintf("%s: %s; for a slice write one of gpuslice's labels", f.Spelling.System, f.Err)
	}
	verb := "is"
	if len(f.Names) > 1 {
		verb = "are"
	}
	text := fmt.Sprintf("%s %s read by %s, not by gpuslice; for a slice write %s",
		strings.Join(f.Names, " and "), verb, f.Spelling.System, cmp.Or(f.Part.instead(), "one of gpuslice's labels"))
	if f.Container == "" {
		return text
	}
	return fmt.Sprintf("container %q: %s", f.Container, text)
}

// maxHints bounds the warnings about other systems' words.
const maxHints = 8

// Hints are the remedies for requests that are not accepted, sorted. A node selector is right with a slice too.
func Hints(asked []Found, unsliced bool) (hints []string) {
	for _, f := range asked {
		if !f.Selected || unsliced {
			hints = append(hints, f.Hint())
		}
	}
	slices.Sort(hints)
	hints = slices.Compact(hints)
	return hints[:min(len(hints), maxHints)]
}
