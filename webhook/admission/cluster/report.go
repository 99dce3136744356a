package cluster

import (
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

// StateReport is the present input of decisions, for people and tools who wonder about a pod's decision.
type StateReport struct {
	Policies []PolicyState `json:"policies"`
	Tenants  []TenantState `json:"tenants,omitempty"`
	// Conflicts are claims or limits on which policies conflict.
	Conflicts []string     `json:"conflicts,omitempty"`
	Pools     []pools.Pool `json:"pools"`
	Nodes     int          `json:"nodes"`
	// Runtimes are the facts by which guard.access: auto chooses.
	Runtimes pools.Runtimes `json:"runtimes,omitzero"`
	// GuardFailures are where guards could not read the GPUs.
	GuardFailures guardaccess.Failures `json:"guardFailures,omitempty"`
	// ResourceQuotas are those on GPU resources in governed namespaces.
	ResourceQuotas []nativequota.QuotaStatus `json:"resourceQuotas,omitempty"`
}

// PolicyState is a policy ConfigMap as it was understood.
type PolicyState struct {
	Name            string `json:"name"`            // "namespace/configmap"
	ResourceVersion string `json:"resourceVersion"` // of the ConfigMap that was read
	Error           string `json:"error,omitempty"` // why this version cannot be used
	LastGood        bool   `json:"lastGood,omitempty"`
}

// TenantState is a tenant's own document as it was understood.
type TenantState struct {
	Name            string   `json:"name"`                      // "namespace/gpuslice-policy"
	ResourceVersion string   `json:"resourceVersion"`           // of the ConfigMap that was read
	EffectivePolicy string   `json:"effectivePolicy,omitempty"` // that governs the namespace; "": none does
	Notes           []string `json:"notes,omitempty"`           // why it is not followed, or not in all
}

// StateReport reports the documents and pools of the snapshot.
func (s *Snapshot) StateReport() StateReport {
	report := StateReport{Pools: s.pools, Nodes: s.nodes, Runtimes: s.runtimes, GuardFailures: s.failures}
	for _, err := range s.conflicts() {
		report.Conflicts = append(report.Conflicts, err.Error())
	}
	for _, d := range s.documents {
		p := PolicyState{Name: d.name, ResourceVersion: d.version, LastGood: d.err != nil && d.policy != nil}
		if d.err != nil {
			p.Error = d.err.Error()
		}
		report.Policies = append(report.Policies, p)
	}
	return report
}

// TenantState reports the result of a namespace's own document.
func (s *Snapshot) TenantState(ns api.Namespace) TenantState {
	own, in := s.tenants[ns.Name], s.Input(ns)
	t := TenantState{Name: own.Name, ResourceVersion: own.object.ResourceVersion, Notes: in.TenantNotes}
	if in.Policy != nil {
		t.EffectivePolicy = in.Policy.Name
	}
	return t
}
