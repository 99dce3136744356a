package cluster

import (
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/config"
)

// Tenant is a tenant's own document in a snapshot.
//
// A broken one keeps no last good version: it only ever tightens, so the authority's policy is safe without it, and
// replicas that remember different versions would judge the same pod differently. To agree they would have to store
// tenants' documents, and a thousand namespaces of hostile ones do not fit into one ConfigMap.
type Tenant struct {
	config.TenantDocument
	object    *corev1.ConfigMap // that it was read from; informers replace objects and never change them
	effective atomic.Pointer[tightened]
}

// tightened is the result of a tenant's document under the authority's policy.
type tightened struct {
	authority, policy *config.Policy
	notes             []string
}

// effectivePolicy is the authority's policy as the document tightens it. It is worked out once for each version of both,
// not for each pod.
func (t *Tenant) effectivePolicy(authority *config.Policy) *tightened {
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
func readTenants(maps []*corev1.ConfigMap, before map[string]*Tenant) (tenants map[string]*Tenant, changed []*Tenant) {
	tenants = make(map[string]*Tenant, len(maps))
	for _, m := range maps {
		own := before[m.Namespace]
		if own == nil || own.object != m {
			own = &Tenant{TenantDocument: config.ReadTenantDocument(m), object: m}
			changed = append(changed, own)
		}
		tenants[m.Namespace] = own
	}
	return tenants, changed
}
