package spellings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
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
	instead := cmp.Or(f.Part.instead(), "one of gpuslice's labels")
	if f.Err != nil {
		instead = fmt.Sprintf("one of gpuslice's labels (%v)", f.Err)
	}
	text := fmt.Sprintf("%s %s read by %s, not by gpuslice; for a slice write %s",
		strings.Join(f.Names, " and "), verb, f.Spelling.System, instead)
	if f.Container == "" {
		return text
	}
	return fmt.Sprintf("container %q: %s", f.Container, text)
}

// Beside is the remedy for a request that is not accepted, of a pod that has a slice: its author, or the system's own webhook, requests
// a GPU twice.
func (f Found) Beside() string {
	if len(f.Names) == 0 {
		return f.Hint()
	}
	verb := "requests"
	if len(f.Names) > 1 {
		verb = "request"
	}
	text := fmt.Sprintf("%s %s a GPU from %s, in addition to the slice: remove it", strings.Join(f.Names, " and "), verb, f.Spelling.System)
	if instead := f.Part.instead(); instead != "" && f.Err == nil {
		text += ", and write " + instead + " if the slice does not have it"
	}
	if f.Spelling.Ignore != "" {
		text += fmt.Sprintf("; if you did not write it, its webhook did: label the pod %s", f.Spelling.Ignore)
	}
	if f.Container == "" {
		return text
	}
	return fmt.Sprintf("container %q: %s", f.Container, text)
}

// several is one remedy for containers of one pod that request sizes which no label can hold for all; "": there is none.
func several(asked []Found) string {
	sizes, names := map[string]api.Size{}, map[string]bool{}
	differ := false
	var first api.Size
	for _, f := range asked {
		if f.Err != nil || f.Container == "" || f.Part.Size == (api.Size{}) || f.Spelling.Name != asked[0].Spelling.Name {
			continue
		}
		if len(sizes) == 0 {
			first = f.Part.Size
		}
		sizes[f.Container] = f.Part.Size
		differ = differ || f.Part.Size != first
		for _, name := range f.Names {
			names[name] = true
		}
	}
	if !differ || len(sizes) < len(asked) {
		return ""
	}
	text, _ := json.Marshal(sizes) // a Size can always be encoded
	verb := "is"
	if len(names) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s %s read by %s, not by gpuslice; for slices write %s: 1 in each container, and the annotation %s: '%s'",
		message.JoinNames(slices.Sorted(maps.Keys(names))), verb, asked[0].Spelling.System, api.ResourceGPU, api.AnnotationContainers, text)
}

// maxHints bounds the warnings about other systems' words.
const maxHints = 8

// Hints are the remedies for requests that are not accepted, sorted, of a pod without a slice, with one, or that is denied. A node
// selector is right with a slice too.
func Hints(asked []Found, unsliced, sliced bool) (hints []string) {
	if text := several(asked); text != "" && !sliced {
		return []string{text}
	}
	for _, f := range asked {
		switch {
		case f.Selected && !unsliced:
		case sliced:
			hints = append(hints, f.Beside())
		default:
			hints = append(hints, f.Hint())
		}
	}
	slices.Sort(hints)
	hints = slices.Compact(hints)
	return hints[:min(len(hints), maxHints)]
}
