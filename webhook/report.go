package webhook

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
)

// report counts what a snapshot was made of and logs each problem once: documents that cannot be used, and what several
// of them claim or limit together.
func (c *Cluster) report(s *Snapshot) {
	found, conflicts := problems(s.documents), s.conflicts()
	c.metrics.read(found, len(conflicts), s.pools)
	now := map[string]string{}
	for _, p := range found {
		now[p.Policy] = p.Err.Error()
		if c.reported[p.Policy] != p.Err.Error() {
			c.log.Error(p.Err, "policy is broken", "policy", p.Policy, "lastGood", p.LastGood)
		}
	}
	for _, err := range conflicts {
		now[err.Error()] = err.Error()
		if c.reported[err.Error()] == "" {
			c.log.Error(err, "policies contradict each other")
		}
	}
	for name := range c.reported {
		if now[name] == "" {
			c.log.Info("no longer broken", "policy", name)
		}
	}
	c.reported = now
	c.log.V(1).Info("snapshot", "policies", len(s.documents), "broken", len(found), "conflicts", len(conflicts), "pools", len(s.pools))
}

// conflicts is what policies claim twice or limit differently, whatever labels namespaces have. Selectors that meet are
// told where they do: to the authors of pods.
func (s *Snapshot) conflicts() []error {
	return append(s.book.Conflicts(nil), s.book.BudgetConflicts()...)
}

// readTenants reads what has changed of tenants' own documents, counts them, and logs those that cannot be used once
// for each version.
func (c *Cluster) readTenants(before map[string]*tenant) map[string]*tenant {
	var maps []*corev1.ConfigMap
	each(c.watched.tenants, func(m *corev1.ConfigMap) {
		if place, _ := policies.PlaceOf(m, c.system); place == policies.PlaceTenant {
			maps = append(maps, m)
		}
	})
	tenants, changed := readTenants(maps, before)
	for _, t := range changed {
		if t.Policy == nil {
			c.log.Info("a tenant's own policy cannot be used", "policy", t.Name, "why", clean(t.Problems[0].Error(), maxMessage))
		}
	}
	good := 0
	for _, t := range tenants {
		if t.Policy != nil {
			good++
		}
	}
	c.metrics.readTenants(good, len(tenants)-good)
	return tenants
}
