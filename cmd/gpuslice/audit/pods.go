package audit

import (
	"context"
	"maps"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/reports"
)

// pods evaluates the living pods of a namespace. Their quota is counted over all namespaces that share the budget.
func (a *auditor) pods(ctx context.Context, namespace string) (all []reports.Pod, err error) {
	key := a.engine.Cluster.Input(namespace).Policy.Quota.BudgetKey(namespace)
	for _, name := range slices.Sorted(maps.Keys(a.engine.Cluster.Labels)) {
		in := a.engine.Cluster.Input(name)
		if !a.inScope(name) || in.Policy.Off() || in.Policy.Quota.BudgetKey(name) != key {
			continue
		}
		pods, err := installed.LivingPods(ctx, a.client, []string{name})
		if err != nil {
			return nil, err
		}
		for i := range pods {
			all = append(all, reports.Evaluate(a.engine.Cluster.InputOf(name, &pods[i]), &pods[i]))
		}
	}
	err = reports.WithinQuota(all, func(in policies.Input) (quota.Quota, error) { return a.quotaOf(ctx, in) })
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p reports.Pod) bool { return p.Pod.Namespace != namespace }), nil
}

// quotaOf is what pods of a namespace would be held against.
func (a *auditor) quotaOf(ctx context.Context, in policies.Input) (quota.Quota, error) {
	native, err := installed.NativeQuotas(ctx, a.client, in.Namespace.Name)
	if err != nil {
		return quota.Quota{}, err
	}
	enforced := *in.Policy
	enforced.EnforcementMode = api.EnforceFull
	in.Policy = &enforced
	return in.WithNative(in.Policy.QuotaFor(in.Namespace.Name), native), nil
}
