package webhook

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

// Native implements Budgets.
func (c *Cluster) Native(namespace string) []policies.NativeQuota { return c.quotas.In(namespace) }

// ResourceQuotas is what is known of the cluster's ResourceQuotas. Run keeps it up to date.
func (c *Cluster) ResourceQuotas() *nativequota.Quotas { return c.quotas }

// Governed are the namespaces whose policy is on, or cannot be read. An error: they are not known yet.
func (c *Cluster) Governed() (out []nativequota.Governed, err error) {
	snapshot := c.snapshot.Load()
	if snapshot == nil {
		return nil, c.Ready()
	}
	each(c.watched.namespaces, func(ns *corev1.Namespace) {
		in := snapshot.Input(policies.Namespace{Name: ns.Name, Labels: ns.Labels})
		on := in.PolicyError != nil || in.Policy != nil && in.Policy.Mode != policies.ModeOff
		if on && ns.DeletionTimestamp == nil && ns.Name != c.system {
			out = append(out, nativequota.Governed{Namespace: ns.Name, Policy: in.Policy, Pools: in.Pools})
		}
	})
	return out, nil
}

// NativeQuotas tells how ResourceQuotas on GPU resources stand to gpuslice.
func (c *Cluster) NativeQuotas() []nativequota.QuotaStatus {
	governed, _ := c.Governed()
	return c.quotas.Statuses(governed)
}

// quota is what pods of the namespace are held against.
func (c *Cluster) quota(in policies.Input) policies.Quota {
	own := policies.QuotaFor(in.Namespace.Name, in.Policy.Quota, in.Policy.TenantQuota)
	return policies.WithNative(own, in.Namespace.Name, in.Policy, c.quotas.In(in.Namespace.Name))
}

// nativeBudgets are those of namespaces that nothing but ResourceQuotas limits: all that known does not hold.
func (c *Cluster) nativeBudgets(known map[string]ledger.Budget) (out []ledger.Budget) {
	governed, _ := c.Governed()
	for _, g := range governed {
		native := c.quotas.In(g.Namespace)
		if g.Policy == nil || len(native) == 0 || len(policies.WithNative(policies.Quota{}, g.Namespace, g.Policy, native).Limits) == 0 {
			continue
		}
		key := policies.BudgetKey(g.Namespace, g.Policy.Quota)
		if _, ok := known[key]; !ok {
			out = append(out, ledger.Budget{Key: key, Namespaces: []string{g.Namespace}})
		}
	}
	return out
}
