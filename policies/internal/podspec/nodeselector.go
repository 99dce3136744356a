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
