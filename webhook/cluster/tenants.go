package cluster

import (
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
)

// tenant is a tenant's own document in a snapshot.
//
// A broken one keeps no last good version: it only ever tightens, so the authority's policy is safe without it, and
// what one replica remembers and another does not would make them judge the same pod differently. To agree they would
// have to store what tenants write, and a thousand namespaces of hostile documents do not fit into one ConfigMap.
type tenant struct {
	policies.TenantDocument
	object    *corev1.ConfigMap // that it was read from; informers replace objects and never change them
	effective atomic.Pointer[tightened]
}

// tightened is what a tenant's document comes to under the authority's policy.
type tightened struct {
	authority, policy *policies.Policy
	notes             []string
}

// effectivePolicy is the authority's policy as the document tightens it. It is worked out once for each version of both,
// not for each pod.
func (t *tenant) effectivePolicy(authority *policies.Policy) *tightened {
	if e := t.effective.Load(); e != nil && e.authority == authority {
		return e
	}
	e := &tightened{authority: authority}
	e.policy, e.notes = t.Tighten(authority)
	t.effective.Store(e)
	return e
}

// readTenants understands the tenants' own documents, by namespace. Those that have not changed since before are taken
// from there: one tenant that writes often costs one document each time.
func readTenants(maps []*corev1.ConfigMap, before map[string]*tenant) (tenants map[string]*tenant, changed []*tenant) {
	tenants = make(map[string]*tenant, len(maps))
	for _, m := range maps {
		own := before[m.Namespace]
		if own == nil || own.object != m {
			own = &tenant{TenantDocument: policies.ReadTenantDocument(m), object: m}
			changed = append(changed, own)
		}
		tenants[m.Namespace] = own
	}
	return tenants, changed
}

// slimTenant keeps of a tenant's ConfigMap what decides whether it can be used, within bounds: its author chooses how
// large it is, and every replica holds those of all namespaces.
func slimTenant(object any) (any, error) {
	m, ok := object.(*corev1.ConfigMap)
	if !ok {
		return object, nil
	}
	kept := &corev1.ConfigMap{}
	kept.Namespace, kept.Name, kept.ResourceVersion = m.Namespace, m.Name, m.ResourceVersion
	kept.Data = map[string]string{}
	if len(m.Data)+len(m.BinaryData) > 1 {
		kept.BinaryData = map[string][]byte{"more": nil} // that there are other keys is all that is kept of them
	}
	if text, ok := m.Data[policies.PolicyKey]; ok {
		kept.Data[policies.PolicyKey] = string([]byte(text[:min(len(text), policies.MaxTenantDocument+1)])) // a copy: a part would keep the whole
	}
	return kept, nil
}
