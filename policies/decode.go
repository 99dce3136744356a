package policies

import corev1 "k8s.io/api/core/v1"

// RawPod is a pod as it arrived: the typed pod, and the tree it was read from, which may hold fields that this build
// does not know.
type RawPod struct {
	Pod  *corev1.Pod
	Tree map[string]any
}

// DecodePod reads a pod's JSON. What is too large, or holds quantities that are costly to parse, is a Violation; what
// is no pod at all is an error. Bounds are checked before anything is parsed into types.
func DecodePod(raw []byte) (RawPod, *Violation, error) {
	return RawPod{}, nil, nil
}
