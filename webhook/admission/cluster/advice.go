package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/sizing/advice"
)

// adviceReader reads the recommended sizes where they changed.
type adviceReader struct {
	versions []string // of the ConfigMaps that were read last
	book     *advice.Book
}

func adviceTexts(maps []*corev1.ConfigMap) (texts []string) {
	for _, m := range maps {
		texts = append(texts, m.Data[advice.Key])
	}
	return texts
}
