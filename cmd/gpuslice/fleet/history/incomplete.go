package history

import (
	"slices"

	"github.com/gpuslice/gpuslice/guard/shorten"
)

const (
	maxWarnings = 5   // that are kept, of all answers
	maxWarning  = 300 // bytes of one
)

// Incomplete is what a server said beside incomplete answers, each text once: half of a history is none.
type Incomplete []string

func (i *Incomplete) add(text string) {
	if text = shorten.Line(text, maxWarning); len(*i) < maxWarnings && !slices.Contains(*i, text) {
		*i = append(*i, text)
	}
}
