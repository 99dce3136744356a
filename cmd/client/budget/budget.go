// Package budget reads the state of the budgets of a cluster from policies, ledgers and pods, as a user who may read them.
package budget

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// maxHolders bounds the pods that are named below a budget.
const maxHolders = 5

// Budget is the usage of one budget: an item of -o json.
type Budget struct {
	Budget     string         `json:"budget"` // "namespace/NAME" or "shared/NAME"; "": nothing is counted
	Namespaces []string       `json:"namespaces"`
	Policy     string         `json:"policy,omitempty"` // "": none governs the namespace
	Counted    bool           `json:"counted"`
	Figures    []quota.Figure `json:"figures"`
	More       int            `json:"more,omitempty"`
	Holders    []Holder       `json:"holders"`
	// MemoryUnknown reports whether pods hold devices whose memory is not known, which the figures leave out.
	MemoryUnknown bool `json:"memoryUnknown,omitempty"`
}

// Holder is a living pod and its holding.
type Holder struct {
	Namespace string  `json:"namespace"`
	Pod       string  `json:"pod"`
	Memory    int64   `json:"memory"` // bytes; 0 beside gpus: unknown
	Slices    int64   `json:"slices"`
	GPUs      int64   `json:"gpus"`
	Devices   float64 `json:"devices"`             // GPU equivalents
	Promised  bool    `json:"promised"`            // false: it counts as the whole devices that it requests
	Untrusted bool    `json:"untrusted,omitempty"` // it has a promise that no known key signed, and counts likewise
}

// ClaimsFunc returns the claims that a pod's holding depends on.
type ClaimsFunc func(*corev1.Pod) accounting.PodClaims

// Holders are the pods that hold the most.
func Holders(keys promise.Keys, pods []corev1.Pod, claims ClaimsFunc) (all []Holder, memoryUnknown bool) {
	all = []Holder{}
	for i := range pods {
		h, promised := holding(keys, claims(&pods[i]))
		if h.Charge == (quota.Charge{}) {
			continue
		}
		memoryUnknown = memoryUnknown || h.MemoryUnknown
		all = append(all, Holder{
			Namespace: pods[i].Namespace, Pod: pods[i].Name, Promised: promised, Untrusted: !promised && promise.ClaimedPromise(&pods[i]) != nil,
			Memory: h.Charge.Memory.Bytes(), Slices: h.Charge.Slices, GPUs: h.Charge.GPUs, Devices: h.Charge.Devices.Float(),
		})
	}
	slices.SortFunc(all, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Memory, a.Memory), cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(b.Slices, a.Slices),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	return all[:min(len(all), maxHolders)], memoryUnknown
}

// holding is a pod's holding: by its promise if a key signed it, and by its own account if no key may be read.
func holding(keys promise.Keys, c accounting.PodClaims) (h quota.Holding, promised bool) {
	p := promise.ClaimedPromise(c.Pod)
	if keys.Signs() {
		p = keys.PromiseOf(c.Pod)
	}
	return c.Total(p), p != nil
}
