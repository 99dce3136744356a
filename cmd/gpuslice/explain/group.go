package explain

import (
	"slices"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/policies/api"
)

// shownOfGroup is how many names of a group are shown.
const shownOfGroup = 2

// group holds the elements of a list with the same key, in the order of the list.
type group[T any] struct {
	first T
	names []string
}

// grouped groups a list by key. name is shown of each.
func grouped[T any, K comparable](all []T, key func(T) K, name func(T) string) (out []group[T]) {
	at := map[K]int{}
	for _, one := range all {
		i, known := at[key(one)]
		if !known {
			i = len(out)
			at[key(one)] = i
			out = append(out, group[T]{first: one})
		}
		if n := name(one); !slices.Contains(out[i].names, n) {
			out[i].names = append(out[i].names, n)
		}
	}
	return out
}

func (g group[T]) title() string { return cli.First(shownOfGroup, g.names) }

// rejected lists the pools that were not chosen by the reason, each reason once.
func (p *page) rejected(all []api.CandidateReport) {
	others := slices.DeleteFunc(slices.Clone(all), func(c api.CandidateReport) bool { return c.Chosen })
	for _, g := range grouped(others, func(c api.CandidateReport) string { return c.Why },
		func(c api.CandidateReport) string { return c.Pool }) {
		p.Line("  not " + g.title() + ": " + g.first.Why)
	}
}

// groupNamed shows elements that differ in their names alone once, with the names. name points to that of one.
func groupNamed[T comparable](all []T, name func(one *T) *string) (out []T) {
	nameless := func(one T) T { *name(&one) = ""; return one }
	for _, g := range grouped(all, nameless, func(one T) string { return *name(&one) }) {
		*name(&g.first) = g.title()
		out = append(out, g.first)
	}
	return out
}

// groupEvents shows an event of several objects, or a repeated one, once: at its last time.
func groupEvents(all []event) (out []event) {
	type alike struct{ from, reason, text string }
	of := func(e event) alike { return alike{e.From, e.Reason, e.Text} }
	newest := slices.Clone(all)
	slices.Reverse(newest)
	for _, g := range grouped(newest, of, func(e event) string { return e.Object }) {
		one := g.first
		one.Object, one.Count = g.title(), 0
		for _, e := range all {
			if of(e) == of(one) {
				one.Count += e.Count
			}
		}
		out = append(out, one)
	}
	slices.Reverse(out)
	return out
}
