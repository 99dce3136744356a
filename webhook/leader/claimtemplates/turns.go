package claimtemplates

import (
	"cmp"
	"slices"
)

// inTurn lists the templates of each namespace so that the first of each comes before the second of any: no namespace makes others wait.
func inTurn(byNamespace map[string][]string) []templateRef {
	type turn struct {
		n int
		templateRef
	}
	var turns []turn
	for namespace, names := range byNamespace {
		for n, name := range names {
			turns = append(turns, turn{n, templateRef{namespace, name}})
		}
	}
	slices.SortFunc(turns, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.namespace, b.namespace))
	})
	out := make([]templateRef, len(turns))
	for i := range turns {
		out[i] = turns[i].templateRef
	}
	return out
}
