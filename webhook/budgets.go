package webhook

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// budgets are those of a cluster at one moment.
type budgets struct {
	snapshot *Snapshot
	version  string // of the namespaces they were made of
	all      map[string]ledger.Budget
	quotas   map[string]policies.Quota
}

// budgetBook keeps the budgets until policies or namespaces change.
type budgetBook struct {
	mu   sync.Mutex
	last budgets
}

// Budget implements Budgets.
func (c *Cluster) Budget(in policies.Input) (ledger.Budget, policies.Quota, string) {
	key := policies.BudgetKey(in.Namespace.Name, in.Policy.Quota)
	budget := ledger.Budget{Key: key, Namespaces: []string{in.Namespace.Name}}
	if in.Policy.Quota.Budget != "" {
		// The namespace itself may be younger than the list of those that share.
		shared := append(slices.Clone(c.budgets().all[key].Namespaces), in.Namespace.Name)
		slices.Sort(shared)
		budget.Namespaces = slices.Compact(shared)
	}
	uid := ""
	if ns := c.cachedNamespace(in.Namespace.Name); ns != nil {
		uid = string(ns.UID)
	}
	return budget, c.quota(in), uid
}

// Budgets are all that limit anything, for the replica that looks after those that nobody asks about.
func (c *Cluster) Budgets() []ledger.Budget {
	all := c.budgets().all
	return slices.AppendSeq(c.nativeBudgets(all), maps.Values(all))
}

// Quotas are what the budgets limit, by their keys: policy's limits, and those of tenants' own documents. It is read-only.
func (c *Cluster) Quotas() map[string]policies.Quota { return c.budgets().quotas }

// budgets sorts the governed namespaces by budget.
func (c *Cluster) budgets() budgets {
	snapshot, version := c.snapshot.Load(), c.watched.namespaces.LastSyncResourceVersion()
	if snapshot == nil {
		return budgets{}
	}
	c.budgetBook.mu.Lock()
	defer c.budgetBook.mu.Unlock()
	if last := c.budgetBook.last; last.snapshot == snapshot && last.version == version {
		return last
	}
	now := budgets{snapshot, version, map[string]ledger.Budget{}, map[string]policies.Quota{}}
	each(c.watched.namespaces, func(ns *corev1.Namespace) {
		now.add(snapshot.Input(policies.Namespace{Name: ns.Name, Labels: ns.Labels}))
	})
	for _, b := range now.all {
		slices.Sort(b.Namespaces)
	}
	c.budgetBook.last = now
	return now
}

// add counts a namespace in its budget, if anything limits it.
func (b budgets) add(in policies.Input) {
	if in.Policy == nil || in.Policy.Mode == policies.ModeOff {
		return
	}
	name, key := in.Namespace.Name, policies.BudgetKey(in.Namespace.Name, in.Policy.Quota)
	own := policies.QuotaFor(name, in.Policy.Quota, in.Policy.TenantQuota).Limits
	if len(own) == 0 {
		return
	}
	budget, shared := b.all[key]
	budget.Key, budget.Namespaces = key, append(budget.Namespaces, name)
	b.all[key] = budget
	limits := b.quotas[key].Limits
	for _, l := range own {
		if !shared || l.Scope.Namespace != "" { // what limits all who share stands there already
			limits = append(limits, l)
		}
	}
	b.quotas[key] = policies.Quota{Limits: limits}
}

// Hold is what a stored pod counts for in its namespace's budget, and how that is known: for the ledger's lists.
func (c *Cluster) Hold(keys policies.Keys, pod *corev1.Pod) (policies.Holding, ledger.ChargeBasis) {
	in := c.storedInput(pod)
	holding, source := policies.HoldingOf(pod, keys, in.Pools)
	switch {
	case source == policies.ChargePromise:
		return holding, ledger.BasisPromise
	case source == policies.ChargeNone || in.Policy == nil:
		return holding, ledger.BasisDevices
	case in.Policy.EnforcementMode == policies.EnforceAudit:
		return held(in, nil), ledger.BasisDevices
	case policies.Verify(in, nil).Would == policies.Refused:
		return holding, ledger.BasisUnmanaged
	}
	return holding, ledger.BasisDevices
}

// storedInput is what a pod that is there already would be decided by, from what is known without asking anybody.
func (c *Cluster) storedInput(pod *corev1.Pod) policies.Input {
	snapshot := c.snapshot.Load()
	if snapshot == nil {
		return policies.Input{Pod: pod}
	}
	ns := policies.Namespace{Name: pod.Namespace}
	if known := c.cachedNamespace(pod.Namespace); known != nil {
		ns.Labels = known.Labels
	}
	in := snapshot.Input(ns)
	in.Pod = pod
	return in
}
