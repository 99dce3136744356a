package reports

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// Pod is a living pod and its decision.
type Pod struct {
	Pod      *corev1.Pod
	Decision policies.Decision
	Sliced   bool  // it has a slice already
	Err      error // why the pod cannot be evaluated: then there is no Decision, and no quota counts the pod

	in      policies.Input
	holding quota.Holding
	subject Subject
}

// Evaluate evaluates a living pod as if it were created again: its node and status are not its author's.
func Evaluate(in policies.Input, living *corev1.Pod) Pod {
	pod := living.DeepCopy()
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{QOSClass: living.Status.QOSClass}
	in.Pod = pod
	given := promise.ClaimedPromise(pod)
	p := Pod{Pod: pod, in: in, Sliced: given != nil}
	if p.Sliced {
		p.Decision = policies.Verify(in, given)
	} else {
		p.Decision = policies.Decide(in)
	}
	if p.Decision.Promise != nil {
		given = p.Decision.Promise
	}
	p.holding = in.GPUClaims().Total(given)
	p.subject = p.describe()
	return p
}

// unreadable is a pod that exceeds the bounds on parsed input: the webhook denies it, if it is called.
func unreadable(in policies.Input, v api.Violation, text []byte) Pod {
	if !reviewed(text) {
		why := shorten.Text(v.String(), maxMessage) + "; denied if it uses a GPU"
		return unevaluated(in, errors.New(why), why)
	}
	p := Pod{Pod: in.Pod, in: in, Decision: in.Deny(v)}
	p.subject = p.describe()
	return p
}

// unevaluated is a pod that cannot be evaluated, and why, for its Report.
func unevaluated(in policies.Input, err error, why string) Pod {
	return Pod{Pod: in.Pod, in: in, Err: err, subject: Subject{"Pod", in.Pod.Name, erred, "", why}}
}

// idle reports whether nothing would change for the pod, and no quota counts it.
func (p *Pod) idle() bool {
	return p.Decision.IfEnforced == policies.Unchanged && p.holding.Charge == quota.Charge{}
}

// describe is the Report's part about the pod.
func (p *Pod) describe() Subject {
	d := p.Decision
	message := d.Message()
	if d.IfEnforced == policies.Mutated && d.Planned != nil {
		message = fmt.Sprintf("%s on %s, enforcement planned: %s", d.Planned.Strategy, d.Planned.Pool, cmp.Or(d.Planned.Tier, "none"))
	}
	return Subject{"Pod", p.Pod.Name, ResultOf(d, p.Sliced), d.Reason(), shorten.Text(message, maxMessage)}
}

// Forget drops all but the parts of the pod that its quota and its Report need: a budget may have tens of thousands, of
// a megabyte each. Of its Decision, the outcome is left.
func (p *Pod) Forget() {
	kept := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Pod.Namespace, Name: p.Pod.Name, UID: p.Pod.UID, CreationTimestamp: p.Pod.CreationTimestamp,
	}}
	if owner := metav1.GetControllerOf(p.Pod); owner != nil { // a denial for want of quota speaks of rolling updates
		kept.OwnerReferences = []metav1.OwnerReference{*owner}
		kept.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: p.Pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]}
	}
	p.Pod, p.in.Pod, p.in.Claims, p.in.LimitRanges = kept, kept, nil, nil
	p.Decision = policies.Decision{IfEnforced: p.Decision.IfEnforced}
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
		if p.Err != nil || p.Decision.IfEnforced == policies.Denied {
			continue
		}
		r := ledger.Reservation{PodUID: string(p.Pod.UID), Name: p.Pod.Name, Holding: p.holding}
		if excess := tally.Excess(limits, r); len(excess) > 0 {
			p.Decision = policies.DenyQuota(p.in, excess)
			p.subject = p.describe()
			continue
		}
		tally.Reserve(r)
	}
	return nil
}
