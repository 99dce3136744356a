package config

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// QuotaSpec limits the total of the pods of a namespace. A tenant's own document narrows it further for the tenant's
// namespace.
type QuotaSpec struct {
	// Budget names a budget that all namespaces whose policies name it share. Empty: each namespace has its own. Not
	// for tenants.
	Budget string `json:"budget,omitempty"`
	// Memory, Slices, GPUs and Devices limit the whole budget, as in Limits.
	Memory  *quantity.MiB     `json:"memory,omitempty"`
	Slices  *int64            `json:"slices,omitempty"`
	GPUs    *int64            `json:"gpus,omitempty"`    // whole devices, which also count their memory
	Devices *quantity.Devices `json:"devices,omitempty"` // see policies/README.md#gpu-equivalents
	// Pools and Classes limit one pool, or slices of one class.
	Pools   map[string]quota.Limits `json:"pools,omitempty"`
	Classes map[string]quota.Limits `json:"classes,omitempty"`
	// Native is the handling of ResourceQuotas on GPU resources; default check. Not for tenants. See
	// policies/README.md#resourcequotas-beside-it.
	Native modes.NativeMode `json:"native,omitempty"`
}

// CountsNative reports whether pods are counted for ResourceQuotas on GPU resources.
func (q QuotaSpec) CountsNative() bool { return q.Native != modes.NativeOff }

// Whole are the limits of the whole budget.
func (q QuotaSpec) Whole() quota.Limits {
	return quota.Limits{Memory: q.Memory, Slices: q.Slices, GPUs: q.GPUs, Devices: q.Devices}
}

// Limited reports whether the quota limits anything.
func (q QuotaSpec) Limited() bool {
	return q.Whole() != quota.Limits{} || len(q.Pools) > 0 || len(q.Classes) > 0
}

// BudgetKey names the budget that a namespace's pods are counted in: one of its own, or the shared one that its policy
// names. Keys of the two kinds never meet.
func (q QuotaSpec) BudgetKey(namespace string) string {
	if q.Budget != "" {
		return "shared/" + q.Budget
	}
	return "namespace/" + namespace
}

// QuotaFor returns the quota of a pod of the namespace: the limits that policy sets on the budget, then those that the
// tenant's own document (nil: none) sets on the namespace's part of it.
func (p *Policy) QuotaFor(namespace string) quota.Quota {
	limits := quotaLimits(cmp.Or(p.Quota.Budget, namespace), quota.Scope{}, p.Quota)
	if p.TenantQuota != nil {
		limits = append(limits, quotaLimits(namespace+"/"+api.TenantPolicyName, quota.Scope{Namespace: namespace}, *p.TenantQuota)...)
	}
	return quota.Quota{Limits: limits}
}

// quotaLimits lists the limits of one document within a scope, in a stable order.
func quotaLimits(name string, scope quota.Scope, spec QuotaSpec) []quota.Limit {
	var out []quota.Limit
	if whole := spec.Whole(); whole != (quota.Limits{}) {
		out = append(out, quota.Limit{Name: name, Scope: scope, Limits: whole})
	}
	for _, pool := range slices.Sorted(maps.Keys(spec.Pools)) {
		scope := quota.Scope{Namespace: scope.Namespace, Pool: pool}
		out = append(out, quota.Limit{Name: name + " (pool " + pool + ")", Scope: scope, Limits: spec.Pools[pool]})
	}
	for _, class := range slices.Sorted(maps.Keys(spec.Classes)) {
		scope := quota.Scope{Namespace: scope.Namespace, Class: class}
		out = append(out, quota.Limit{Name: name + " (class " + class + ")", Scope: scope, Limits: spec.Classes[class]})
	}
	return out
}
