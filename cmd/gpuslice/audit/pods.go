package audit

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// auditedPod is a living pod and what would become of it.
type auditedPod struct {
	pod      *corev1.Pod
	in       policies.Input
	decision policies.Decision
}

// pods evaluates the living pods of a namespace. Their quota is counted over all namespaces that share the budget.
func (a *auditor) pods(ctx context.Context, namespace string) (out []auditedPod, err error) {
	key := a.engine.Cluster.Input(namespace).Policy.Quota.BudgetKey(namespace)
	var all []auditedPod
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
			all = append(all, evaluate(a.engine.Cluster.InputOf(name, &pods[i]), &pods[i]))
		}
	}
	slices.SortStableFunc(all, func(x, y auditedPod) int { return x.pod.CreationTimestamp.Compare(y.pod.CreationTimestamp.Time) })
	if err := a.overQuota(ctx, all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p auditedPod) bool { return p.pod.Namespace != namespace }), nil
}

// evaluate evaluates a living pod as if it were created again: its node and status are not its author's.
func evaluate(in policies.Input, living *corev1.Pod) auditedPod {
	pod := living.DeepCopy()
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{QOSClass: living.Status.QOSClass}
	in.Pod = pod
	if promise := promise.ClaimedPromise(pod); promise != nil {
		return auditedPod{pod, in, policies.Verify(in, promise)}
	}
	return auditedPod{pod, in, policies.Decide(in)}
}

// overQuota reserves for one pod after the other, and denies those that exceed the quota.
func (a *auditor) overQuota(ctx context.Context, pods []auditedPod) error {
	tally, quotas := ledger.NewTally(ledger.State{}), map[string]quota.Quota{}
	for i := range pods {
		p := &pods[i]
		quota, read := quotas[p.pod.Namespace]
		if !read {
			var err error
			if quota, err = a.quotaOf(ctx, p.in); err != nil {
				return err
			}
			quotas[p.pod.Namespace] = quota
		}
		if p.decision.IfEnforced == policies.Denied {
			continue
		}
		r := ledger.Reservation{PodUID: string(p.pod.UID), Name: p.pod.Name, Holding: p.holding()}
		if excess := tally.Excess(quota, r); len(excess) > 0 {
			p.decision = p.in.DenyQuota(excess)
			continue
		}
		tally.Reserve(r)
	}
	return nil
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

// holding is what the pod would hold.
func (p *auditedPod) holding() quota.Holding {
	if p.decision.Promise != nil {
		return p.in.HoldingWithClaims(p.decision.Promise.Holding(p.pod), p.decision.Promise)
	}
	if promise := promise.ClaimedPromise(p.pod); promise != nil {
		return p.in.HoldingWithClaims(promise.Holding(p.pod), promise)
	}
	h := promise.ExclusiveHolding(p.pod, p.in.Pools)
	return p.in.HoldingWithClaims(h, nil)
}
