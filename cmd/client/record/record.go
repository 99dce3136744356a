// Package record reads gpuslice's records on a pod.
package record

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
)

// Promise is the promise of a pod; nil: none.
func Promise(p *corev1.Pod) (*promise.Promise, error) {
	text := p.Annotations[api.AnnotationPromise]
	if text == "" {
		return nil, nil
	}
	return promise.Decode(text)
}

// Observation is the observation of a pod; nil: none yet.
func Observation(p *corev1.Pod) *observe.Observation {
	o, err := observe.DecodeObservation(p.Annotations[api.AnnotationObserved])
	if err != nil {
		return nil
	}
	return &o
}
