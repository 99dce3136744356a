// Package budgets checks new pods against the quotas of their namespaces: what a pod counts for, which budget it is counted
// in, and what limits that.
package budgets

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/cluster"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// Budgets are those of a cluster's namespaces. They are worked out anew where policies or namespaces have changed.
type Budgets struct {
	cluster *cluster.Watcher

	mu   sync.Mutex
	last policyBudgets
}

// NewBudgets makes the budgets of a cluster.
func NewBudgets(cluster *cluster.Watcher) *Budgets { return &Budgets{cluster: cluster} }

// policyBudgets are the budgets that policies make of a cluster's namespaces, by key.
type policyBudgets struct {
	snapshot   *cluster.Snapshot
	namespaces string // their version
	budgets    map[string]ledger.Budget
	limits     map[string]quota.Quota
}

// NamespaceQuota is what pods of a namespace count in, and are limited by.
type NamespaceQuota struct {
	Budget       ledger.Budget
	Limits       quota.Quota
	Native       []policies.NativeQuota // those that ResourceQuotas set on GPU resources
	NamespaceUID string                 // "": not known
}

// For returns what the pods of a namespace that a policy governs count in. Without limits nothing is counted.
func (b *Budgets) For(in policies.Input) NamespaceQuota {
	name := in.Namespace.Name
	key := in.Policy.Quota.BudgetKey(name)
	budget := ledger.Budget{Key: key, Namespaces: []string{name}}
	if in.Policy.Quota.Budget != "" {
		// The namespace itself may be younger than the list of those that share.
		shared := append(slices.Clone(b.current().budgets[key].Namespaces), name)
		slices.Sort(shared)
		budget.Namespaces = slices.Compact(shared)
	}
	native := b.cluster.ResourceQuotas().In(name)
	own := in.Policy.QuotaFor(name)
	return NamespaceQuota{
		Budget: budget, Limits: in.WithNative(own, native), Native: native, NamespaceUID: b.cluster.Namespaces().UID(name),
	}
}

// All are the budgets that anything limits, for the replica that looks after those without requests.
func (b *Budgets) All() []ledger.Budget {
	all := b.current().budgets
	return slices.AppendSeq(b.nativeOnly(all), maps.Values(all))
}

// Limits are what limits the budgets, by their keys: policy's limits, and those of tenants' own documents. It is read-only.
func (b *Budgets) Limits() map[string]quota.Quota { return b.current().limits }

// current sorts the governed namespaces by budget.
func (b *Budgets) current() policyBudgets {
	snapshot, err := b.cluster.Snapshot()
	version := b.cluster.Namespaces().Version()
	if err != nil {
		return policyBudgets{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last.snapshot == snapshot && b.last.namespaces == version {
		return b.last
	}
	now := policyBudgets{snapshot, version, map[string]ledger.Budget{}, map[string]quota.Quota{}}
	for _, ns := range b.cluster.Namespaces().All() { // by name, and so are those of each budget
		now.add(snapshot.Input(ns))
	}
	b.last = now
	return now
}

// add counts a namespace in its budget, if anything limits it.
func (b policyBudgets) add(in policies.Input) {
	if in.Policy.Off() {
		return
	}
	name, key := in.Namespace.Name, in.Policy.Quota.BudgetKey(in.Namespace.Name)
	own := in.Policy.QuotaFor(name).Limits
	if len(own) == 0 {
		return
	}
	budget, shared := b.budgets[key]
	budget.Key, budget.Namespaces = key, append(budget.Namespaces, name)
	b.budgets[key] = budget
	limits := b.limits[key].Limits
	for _, l := range own {
		if !shared || l.Scope.Namespace != "" { // what limits all who share stands there already
			limits = append(limits, l)
		}
	}
	b.limits[key] = quota.Quota{Limits: limits}
}

// nativeOnly are the budgets of namespaces that nothing but ResourceQuotas limits.
func (b *Budgets) nativeOnly(limited map[string]ledger.Budget) (out []ledger.Budget) {
	governed, _ := b.cluster.Governed() // none while they are not read
	for _, g := range governed {
		native := b.cluster.ResourceQuotas().In(g.Namespace)
		if g.Policy == nil || len(native) == 0 || len(policies.Input{Policy: g.Policy}.WithNative(quota.Quota{}, native).Limits) == 0 {
			continue
		}
		key := g.Policy.Quota.BudgetKey(g.Namespace)
		if _, ok := limited[key]; !ok {
			out = append(out, ledger.Budget{Key: key, Namespaces: []string{g.Namespace}})
		}
	}
	return out
}

// generation is what the holdings of a namespace's pods depend on beside the pods.
type generation struct{ cluster, namespace, keys any }

// Generation is a value that changes with what HoldingOf depends on beside the pod and its claims, with keys of a generation.
func (b *Budgets) Generation(keys any, namespace string) any {
	now := generation{namespace: b.cluster.Namespaces().VersionOf(namespace), keys: keys}
	if snapshot, err := b.cluster.Snapshot(); err == nil {
		now.cluster = snapshot.Generation(namespace)
	}
	return now
}

// HoldingOf is what a stored pod counts for in its namespace's budget, and how that is known: for the ledger's lists.
func (b *Budgets) HoldingOf(keys promise.Keys, pod *corev1.Pod) (quota.Holding, ledger.ChargeBasis) {
	in := b.cluster.CachedInput(pod)
	holding, promised := keys.HoldingOf(pod, in.Pools)
	if in.Policy != nil {
		holding = in.HoldingWithClaims(holding, given(keys, pod, promised))
	}
	switch {
	case promised:
		return holding, ledger.BasisPromise
	case holding.Charge == quota.Charge{} || in.Policy == nil:
		return holding, ledger.BasisDevices
	case in.Policy.EnforcementMode == api.EnforceAudit:
		return holdingOf(in, nil), ledger.BasisDevices
	case policies.Verify(in, nil).IfEnforced == policies.Denied, holding.MemoryUnknown && in.Policy.Quota.Memory != nil: // the quota would have denied it
		return holding, ledger.BasisUnmanaged
	}
	return holding, ledger.BasisDevices
}

// PromiseOf is the promise by which a stored pod holds what it holds; nil: it holds its devices.
func (b *Budgets) PromiseOf(keys promise.Keys, pod *corev1.Pod) *promise.Promise {
	return keys.PromiseThatAccounts(pod, b.cluster.CachedInput(pod).Pools)
}

// WithoutSlice is what a pod without a promise takes where a policy governs it: of the pool of its node, or under the name of the
// resource while that is not known.
func (b *Budgets) WithoutSlice(pod *corev1.Pod) (charge quota.Charge, pool string, known bool) {
	in := b.cluster.CachedInput(pod)
	if in.PolicyError == nil && in.Policy.Off() {
		return quota.Charge{}, "", false
	}
	charge, pool, resource := promise.WithoutSlice(pod, in.Pools)
	return charge, cmp.Or(pool, resource), pool != ""
}

// given is the Promise by which a stored pod holds claims; nil: it holds none by it.
func given(keys promise.Keys, pod *corev1.Pod, promised bool) *promise.Promise {
	if !promised || len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	return keys.PromiseOf(pod)
}

// holdingOf is what a pod will hold. In audit mode, where pods stay as they are, it is what they would hold in a slice.
func holdingOf(in policies.Input, given *promise.Promise) quota.Holding {
	if given == nil && in.Policy.EnforcementMode == api.EnforceAudit {
		given = policies.Decide(in).Promise
	}
	if given != nil {
		return in.HoldingWithClaims(given.Holding(in.Pod), given)
	}
	h := promise.ExclusiveHolding(in.Pod, in.Pools)
	return in.HoldingWithClaims(h, nil)
}
