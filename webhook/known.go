package webhook

import (
	"encoding/json"
	"net/http"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

// Known is what decisions rest on at this moment, for people and tools who wonder why a pod came out as it did.
type Known struct {
	Policies []KnownPolicy   `json:"policies"`
	Pools    []policies.Pool `json:"pools"`
	Nodes    int             `json:"nodes"`
	// ResourceQuotas are those on GPU resources in governed namespaces.
	ResourceQuotas []nativequota.State `json:"resourceQuotas,omitempty"`
}

// KnownPolicy is a policy ConfigMap as it was understood.
type KnownPolicy struct {
	Name            string `json:"name"`            // "namespace/configmap"
	ResourceVersion string `json:"resourceVersion"` // of the ConfigMap that was read
	Error           string `json:"error,omitempty"` // why this version cannot be used
	LastGood        bool   `json:"lastGood,omitempty"`
}

// Known returns what the latest snapshot was made of.
func (c *Cluster) Known() Known {
	if snapshot := c.snapshot.Load(); snapshot != nil {
		known := snapshot.known
		known.ResourceQuotas = c.NativeQuotas()
		return known
	}
	return Known{}
}

// known says what documents and pools a snapshot was made of.
func known(documents []document, pools []policies.Pool, nodes int) Known {
	k := Known{Pools: pools, Nodes: nodes}
	for _, d := range documents {
		p := KnownPolicy{Name: d.name, ResourceVersion: d.version, LastGood: d.err != nil && d.policy != nil}
		if d.err != nil {
			p.Error = d.err.Error()
		}
		k.Policies = append(k.Policies, p)
	}
	return k
}

// serveKnown answers with what is known, as JSON.
func serveKnown(known func() Known) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(known())
	}
}
