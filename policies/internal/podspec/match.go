package podspec

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// NumberBeyond reports whether value is a whole number above (or below) bound.
func NumberBeyond(value, bound string, above bool) bool {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	b, err := strconv.ParseInt(bound, 10, 64)
	if err != nil {
		return false
	}
	return above && n > b || !above && n < b
}

func AnyTolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		if tolerates(&tolerations[i], taint) {
			return true
		}
	}
	return false
}

// tolerates is corev1's ToleratesTaint without its logger.
func tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		return t.Value == taint.Value
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpGt, corev1.TolerationOpLt:
		return NumberBeyond(taint.Value, t.Value, t.Operator == corev1.TolerationOpGt)
	}
	return false
}
