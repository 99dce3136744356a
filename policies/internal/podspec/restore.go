package podspec

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ContainerPairs yields each container of updated, ours too, with that of its name in the same list of old.
func ContainerPairs(old, updated *corev1.Pod) iter.Seq2[*corev1.Container, *corev1.Container] {
	lists := [][2][]corev1.Container{
		{old.Spec.InitContainers, updated.Spec.InitContainers},
		{old.Spec.Containers, updated.Spec.Containers},
	}
	return func(yield func(was, c *corev1.Container) bool) {
		for _, list := range lists {
			for i := range list[1] {
				c := &list[1][i]
				j := slices.IndexFunc(list[0], func(o corev1.Container) bool { return o.Name == c.Name })
				if j >= 0 && !yield(&list[0][j], c) {
					return
				}
			}
		}
	}
}

// RestoreList returns the old list where the new one differs from it by elements of ours and by order alone, with the
// author's own changes of an element. Else the new one: the author added or removed something, and the server's own
// answer should be about that.
func RestoreList[T any](list, was []T, ours func(T) bool, same func(a, b T) bool) []T {
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
