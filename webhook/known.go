package webhook

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

// Known is what decisions rest on at this moment, for people and tools who wonder why a pod came out as it did.
type Known struct {
	Policies []KnownPolicy `json:"policies"`
	Tenants  []KnownTenant `json:"tenants,omitempty"`
	// Conflicts is what policies claim or limit together, and may not.
	Conflicts []string        `json:"conflicts,omitempty"`
	Pools     []policies.Pool `json:"pools"`
	Nodes     int             `json:"nodes"`
	// ResourceQuotas are those on GPU resources in governed namespaces.
	ResourceQuotas []nativequota.QuotaStatus `json:"resourceQuotas,omitempty"`
}

// KnownPolicy is a policy ConfigMap as it was understood.
type KnownPolicy struct {
	Name            string `json:"name"`            // "namespace/configmap"
	ResourceVersion string `json:"resourceVersion"` // of the ConfigMap that was read
	Error           string `json:"error,omitempty"` // why this version cannot be used
	LastGood        bool   `json:"lastGood,omitempty"`
}

// KnownTenant is a tenant's own document as it was understood.
type KnownTenant struct {
	Name            string   `json:"name"`            // "namespace/gpuslice-policy"
	ResourceVersion string   `json:"resourceVersion"` // of the ConfigMap that was read
	Holds           string   `json:"holds,omitempty"` // the policy that holds in the namespace; "": none does
	Notes           []string `json:"notes,omitempty"` // why it is not followed, or not in all
}

// Known returns what the latest snapshot was made of.
func (c *Cluster) Known() Known {
	snapshot := c.snapshot.Load()
	if snapshot == nil {
		return Known{}
	}
	k := snapshot.known
	for _, namespace := range slices.Sorted(maps.Keys(snapshot.tenants)) {
		k.Tenants = append(k.Tenants, c.knownTenant(snapshot, namespace))
	}
	k.ResourceQuotas = c.NativeQuotas()
	return k
}

// knownTenant says what a tenant's own document comes to.
func (c *Cluster) knownTenant(s *Snapshot, namespace string) KnownTenant {
	own := s.tenants[namespace]
	k := KnownTenant{Name: own.Name, ResourceVersion: own.object.ResourceVersion}
	ns := policies.Namespace{Name: namespace}
	if cached := c.cachedNamespace(namespace); cached != nil {
		ns.Labels = cached.Labels
	}
	in := s.Input(ns)
	k.Notes = in.TenantNotes
	if in.Policy != nil {
		k.Holds = in.Policy.Name
	}
	return k
}

// knows says what documents and pools the snapshot was made of.
func (s *Snapshot) knows(nodes int) Known {
	k := Known{Pools: s.pools, Nodes: nodes}
	for _, err := range s.conflicts() {
		k.Conflicts = append(k.Conflicts, err.Error())
	}
	for _, d := range s.documents {
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
