package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

func SameExpression(a, b corev1.NodeSelectorRequirement) bool {
	return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
}

func SameExpressions(a, b []corev1.NodeSelectorRequirement) bool {
	return slices.EqualFunc(a, b, SameExpression)
}

// LongestRun is where the longest of the terms that term has begins in it, and its length: of two pools one may demand
// all that the other does.
func LongestRun(term corev1.NodeSelectorTerm, terms []corev1.NodeSelectorTerm) (at, n int) {
	for _, t := range terms {
		if i := RunOf(term, t); i >= 0 && len(t.MatchExpressions) > n {
			at, n = i, len(t.MatchExpressions)
		}
	}
	return at, n
}

// RunOf is where the expressions of part last stand in term, one after the other; -1 where they do not.
func RunOf(term, part corev1.NodeSelectorTerm) int {
	n := len(part.MatchExpressions)
	for i := len(term.MatchExpressions) - n; i >= 0; i-- {
		if SameExpressions(term.MatchExpressions[i:i+n], part.MatchExpressions) {
			return i
		}
	}
	return -1
}
