package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

func HasToleration(list []corev1.Toleration, t corev1.Toleration) bool {
	return slices.ContainsFunc(list, func(have corev1.Toleration) bool {
		a, b := have.TolerationSeconds, t.TolerationSeconds
		return have.MatchToleration(&t) && (a == nil) == (b == nil) && (a == nil || *a == *b)
	})
}
