package scenarios

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gpuslice/gpuslice/policies"
)

// Told is a decision in a few lines, in the form of pages.
func Told(d policies.Decision) string {
	var b strings.Builder
	if d.Promise != nil {
		for i, c := range d.Planned.Containers {
			tiers := "none"
			if len(c.Tiers) > 0 {
				tiers = strings.Trim(fmt.Sprint(c.Tiers), "[]")
			}
			fmt.Fprintf(&b, "%s: %s of %s by %s; enforced by: %s\n", c.Name, c.Memory,
				cmp.Or(d.Promise.Containers[i].Resource, d.Promise.Containers[i].Template), d.Planned.Strategy, tiers)
		}
		for _, note := range d.Planned.Notes {
			fmt.Fprintf(&b, "note: %s\n", note)
		}
	}
	for _, v := range d.Violations {
		fmt.Fprintf(&b, "denied: %s\n", v)
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}
