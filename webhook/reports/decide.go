package reports

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// Pod is a living pod and what would become of it.
type Pod struct {
	Pod      *corev1.Pod
	Decision policies.Decision

	in policies.Input
}

// Evaluate evaluates a living pod as if it were created again: its node and status are not its author's.
func Evaluate(in policies.Input, living *corev1.Pod) Pod {
	pod := living.DeepCopy()
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{QOSClass: living.Status.QOSClass}
	in.Pod = pod
	if given := promise.ClaimedPromise(pod); given != nil {
		return Pod{pod, policies.Verify(in, given), in}
	}
	return Pod{pod, policies.Decide(in), in}
}

// Sliced reports whether the pod has a slice already.
func (p *Pod) Sliced() bool { return promise.ClaimedPromise(p.Pod) != nil }

// idle reports whether nothing would change for the pod, and no quota counts it.
func (p *Pod) idle() bool {
	return p.Decision.IfEnforced == policies.Unchanged && p.holding().Charge == quota.Charge{}
}

// WithinQuota reserves for one pod after the other, the oldest first, and denies those that exceed the quota. They count in one budget.
func WithinQuota(pods []Pod, quotaOf func(policies.Input) (quota.Quota, error)) error {
	slices.SortStableFunc(pods, func(x, y Pod) int { return x.Pod.CreationTimestamp.Compare(y.Pod.CreationTimestamp.Time) })
	tally, quotas := ledger.NewTally(ledger.State{}), map[string]quota.Quota{}
	for i := range pods {
		p := &pods[i]
		limits, read := quotas[p.Pod.Namespace]
		if !read {
			var err error
			if limits, err = quotaOf(p.in); err != nil {
				return err
			}
			quotas[p.Pod.Namespace] = limits
		}
		if p.Decision.IfEnforced == policies.Denied {
			continue
		}
		r := ledger.Reservation{PodUID: string(p.Pod.UID), Name: p.Pod.Name, Holding: p.holding()}
		if excess := tally.Excess(limits, r); len(excess) > 0 {
			p.Decision = p.in.DenyQuota(excess)
			continue
		}
		tally.Reserve(r)
	}
	return nil
}

// holding is what the pod would hold.
func (p *Pod) holding() quota.Holding {
	if p.Decision.Promise != nil {
		return p.in.HoldingWithClaims(p.Decision.Promise.Holding(p.Pod), p.Decision.Promise)
	}
	if given := promise.ClaimedPromise(p.Pod); given != nil {
		return p.in.HoldingWithClaims(given.Holding(p.Pod), given)
	}
	return p.in.HoldingWithClaims(promise.ExclusiveHolding(p.Pod, p.in.Pools), nil)
}
