package observe

import (
	"maps"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// maxRelevant bounds the labels and resources that are kept. Where promises name more, every label counts.
const maxRelevant = 1024

// relevance lists the labels and resources of nodes that observations read, because promises name them. It only grows
// while a replica leads.
type relevance struct {
	mu                sync.RWMutex
	labels, resources map[string]bool
}

// add adds the names in a promise. A pod's node has to be read after that: earlier changes on it count for no pod.
func (r *relevance) add(promised *promise.Promise) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.labels == nil {
		r.labels, r.resources = map[string]bool{}, map[string]bool{}
	}
	for i := range promised.Containers {
		r.resources[promised.Containers[i].Resource] = true
	}
	for _, term := range promised.Affinity {
		for i := range term.MatchExpressions {
			r.labels[term.MatchExpressions[i].Key] = true
		}
	}
}

// changed reports whether an observation of a pod on the node may differ.
func (r *relevance) changed(before, after *corev1.Node) bool {
	if maps.Equal(before.Labels, after.Labels) {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.labels)+len(r.resources) > maxRelevant {
		return true
	}
	for key := range r.labels {
		was, had := before.Labels[key]
		is, has := after.Labels[key]
		if was != is || had != has {
			return true
		}
	}
	for name := range r.resources {
		if !reflect.DeepEqual(pools.OfferOf(before, name), pools.OfferOf(after, name)) {
			return true
		}
	}
	return false
}
