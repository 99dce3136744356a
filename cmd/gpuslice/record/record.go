// Package record reads what gpuslice wrote on a pod.
package record

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/observe"
)

// Promise is what a pod was given; nil: nothing.
func Promise(p *corev1.Pod) (*promise.Promise, error) {
	text := p.Annotations[api.AnnotationPromise]
	if text == "" {
		return nil, nil
	}
	return promise.Decode(text)
}

// Observation is what was found where a pod runs; nil: nothing yet.
func Observation(p *corev1.Pod) *observe.Observation {
	o, err := observe.DecodeObservation(p.Annotations[api.AnnotationObserved])
	if err != nil {
		return nil
	}
	return &o
}
