package webhook

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
	object *corev1.ConfigMap // that it was read from; informers replace objects and never change them
	held   atomic.Pointer[tightened]
}

// tightened is what a tenant's document comes to under the authority's policy.
type tightened struct {
	authority, policy *policies.Policy
	notes             []string
}

// under returns what holds with the document under the authority's policy. It is worked out once for each version of
// both, not for each pod.
func (t *tenant) under(authority *policies.Policy) *tightened {
	if h := t.held.Load(); h != nil && h.authority == authority {
		return h
	}
	h := &tightened{authority: authority}
	h.policy, h.notes = t.Tighten(authority)
	t.held.Store(h)
	return h
}

// readTenants understands the tenants' own documents, by namespace. Those that have not changed since before are taken
// from there: one tenant that writes often costs one document each time.
func readTenants(maps []*corev1.ConfigMap, before map[string]*tenant) (tenants map[string]*tenant, changed []*tenant) {
	tenants = make(map[string]*tenant, len(maps))
	for _, m := range maps {
		known := before[m.Namespace]
		if known == nil || known.object != m {
			known = &tenant{TenantDocument: policies.ReadTenantDocument(m), object: m}
			changed = append(changed, known)
		}
		tenants[m.Namespace] = known
	}
	return tenants, changed
}

// slimTenant keeps of a tenant's ConfigMap what tells whether it can be used, within bounds: its author chooses how
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
		kept.BinaryData = map[string][]byte{"more": nil} // that there are others is all that is said of them
	}
	if text, ok := m.Data[policies.PolicyKey]; ok {
		kept.Data[policies.PolicyKey] = string([]byte(text[:min(len(text), policies.MaxTenantDocument+1)])) // a copy: a part would keep the whole
	}
	return kept, nil
}
