// Package budgets checks new pods against the quotas of their namespaces: a pod's charge, its budget, and the limits of
// that budget.
package budgets

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/admission/watcher"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// Budgets are those of a cluster's namespaces. They are recomputed when policies or namespaces change.
type Budgets struct {
	cluster *watcher.Watcher

	mu   sync.Mutex
	last policyBudgets
}

// NewBudgets makes the budgets of a cluster.
func NewBudgets(of *watcher.Watcher) *Budgets { return &Budgets{cluster: of} }

// policyBudgets are the budgets that policies make of a cluster's namespaces, by key.
type policyBudgets struct {
	snapshot   *cluster.Snapshot
	namespaces string // their version
	budgets    map[string]ledger.Budget
	limits     map[string]quota.Quota
}

// NamespaceQuota is the budget of a namespace's pods, and its limits.
type NamespaceQuota struct {
	Budget       ledger.Budget
	Limits       quota.Quota
	Native       []accounting.NativeQuota // those that ResourceQuotas set on GPU resources
	NamespaceUID string                   // "": not known
}

// For returns the budget of the pods of a namespace that a policy governs. Without limits nothing is counted.
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
		Budget: budget, Limits: accounting.WithNative(own, in.Policy, in.Namespace.Name, native),
		Native: native, NamespaceUID: b.cluster.Namespaces().UID(name),
	}
}

// All are the budgets that anything limits, for the replica that looks after those without requests.
func (b *Budgets) All() []ledger.Budget {
	all := b.current().budgets
	return slices.AppendSeq(b.nativeOnly(all), maps.Values(all))
}

// Limits are the limits of the budgets, by their keys: policy's limits, and those of tenants' own documents. It is
// read-only.
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
		if !shared || l.Scope.Namespace != "" { // limits of all who share are there already
			limits = append(limits, l)
		}
	}
	b.limits[key] = quota.Quota{Limits: limits}
}

// nativeOnly are the budgets of namespaces that nothing but ResourceQuotas limits.
func (b *Budgets) nativeOnly(limited map[string]ledger.Budget) (out []ledger.Budget) {
	governed, _ := b.cluster.Governed() // none while they are not read
	for _, g := range governed {
		native := b.cluster.ResourceQuotas().In(g.Name)
		if g.Policy == nil || len(native) == 0 || len(accounting.WithNative(quota.Quota{}, g.Policy, g.Name, native).Limits) == 0 {
			continue
		}
		key := g.Policy.Quota.BudgetKey(g.Name)
		if _, ok := limited[key]; !ok {
			out = append(out, ledger.Budget{Key: key, Namespaces: []string{g.Name}})
		}
	}
	return out
}

// generation identifies the inputs of pods' holdings in a namespace beside the pods.
type generation struct{ cluster, namespace, keys any }

// Generation is a value that changes with the inputs of HoldingOf beside the pod and its claims, with keys of a
// generation.
func (b *Budgets) Generation(keys any, namespace string) any {
	now := generation{namespace: b.cluster.Namespaces().VersionOf(namespace), keys: keys}
	if snapshot, err := b.cluster.Snapshot(); err == nil {
		now.cluster = snapshot.Generation(namespace)
	}
	return now
}

// HoldingOf is the charge of a stored pod in its namespace's budget, and the basis of the charge: for the ledger's
// lists.
func (b *Budgets) HoldingOf(keys promise.Keys, pod *corev1.Pod) (quota.Holding, ledger.ChargeBasis) {
	in := b.cluster.CachedInput(pod)
	holding, promised := accounting.HoldingOf(keys, pod, in.Pools)
	if in.Policy != nil {
		holding = in.GPUClaims().Holding(holding, given(keys, pod, promised))
	}
	switch {
	case promised:
		return holding, ledger.BasisPromise
	case holding.Charge == quota.Charge{} || in.Policy == nil: // nobody promised it anything, nor had to
		return holding, ledger.BasisDevices
	case in.Policy.EnforcementMode == api.EnforceAudit:
		return holdingOf(in, nil), ledger.BasisDevices
	// the quota would have denied it
	case policies.Verify(in, nil).IfEnforced == policies.Denied, holding.MemoryUnknown && in.Policy.Quota.Memory != nil:
		return holding, ledger.BasisUnmanaged
	}
	return holding, ledger.BasisDevices
}

// PromiseOf is the promise on which a stored pod's charge rests; nil: it is charged its devices.
func (b *Budgets) PromiseOf(keys promise.Keys, pod *corev1.Pod) *promise.Promise {
	return accounting.PromiseThatAccounts(keys, pod, b.cluster.CachedInput(pod).Pools)
}

// WithoutSlice is the charge of a pod without a promise if a policy governs it: in the pool of its node, or under the
// name of the resource while that is not known.
func (b *Budgets) WithoutSlice(pod *corev1.Pod) (charge quota.Charge, pool string, known bool) {
	in := b.cluster.CachedInput(pod)
	if in.PolicyError == nil && in.Policy.Off() {
		return quota.Charge{}, "", false
	}
	charge, pool, resource := accounting.WithoutSlice(pod, in.Pools)
	return charge, cmp.Or(pool, resource), pool != ""
}

// given is the Promise by which a stored pod holds claims; nil: it holds none by it.
func given(keys promise.Keys, pod *corev1.Pod, promised bool) *promise.Promise {
	if !promised || len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	return keys.PromiseOf(pod)
}

// holdingOf is the charge of a new pod. In audit mode, where pods stay as they are, it is the charge that they would
// have in a slice.
func holdingOf(in policies.Input, given *promise.Promise) quota.Holding {
	if given == nil && in.Policy.EnforcementMode == api.EnforceAudit {
		given = policies.Decide(in).Promise
	}
	return in.GPUClaims().Total(given)
}
