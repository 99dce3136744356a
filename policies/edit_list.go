package policies

import "slices"

// restoreList returns the old list where the new one differs from it by elements of ours and by order alone, with the
// author's own changes of an element. Else the new one: the author added or removed something, and the server's own
// answer should be about that.
func restoreList[T any](list, was []T, ours func(T) bool, same func(a, b T) bool) []T {
	theirs := 0
	for _, e := range list {
		if ours(e) {
			continue
		}
		if !slices.ContainsFunc(was, func(o T) bool { return same(e, o) }) {
			return list // an element that the author added
		}
		theirs++
	}
	for _, o := range was {
		if !ours(o) {
			theirs--
		}
	}
	if theirs != 0 {
		return list // one that the author removed, or wrote twice
	}
	out := make([]T, len(was))
	for i, o := range was {
		out[i] = o
		if j := slices.IndexFunc(list, func(e T) bool { return same(e, o) }); j >= 0 && !ours(o) {
			out[i] = list[j] // the author's own change of it stays
		}
	}
	return out
}
