package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

func HasToleration(list []corev1.Toleration, t corev1.Toleration) bool {
	return slices.ContainsFunc(list, func(have corev1.Toleration) bool {
		return have.MatchToleration(&t) && equalSeconds(have.TolerationSeconds, t.TolerationSeconds)
	})
}

func equalSeconds(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
