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

// Observed are the tiers that were found on the slice of a container, strongest first: only api.TierNone where nothing enforces it, and
// none where nothing is observed: not yet, or because the pod has terminated.
func Observed(p *corev1.Pod, container string) []api.Tier {
	o := Observation(p)
	if o == nil || o.Tier == "" {
		return nil
	}
	for _, c := range o.Containers {
		if c.Name == container {
			return orNone(c.Tiers)
		}
	}
	return nil
}

// Planned are the planned tiers of the slice of a container, strongest first: only api.TierNone where nothing is to enforce it.
func Planned(c promise.PlannedContainer) []api.Tier { return orNone(c.Tiers) }

func orNone(tiers []api.Tier) []api.Tier {
	if len(tiers) == 0 {
		return []api.Tier{api.TierNone}
	}
	return tiers
}
