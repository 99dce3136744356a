package audit

import (
	"errors"
	"fmt"
	"runtime/debug"
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

// maxMessage bounds what a pod's author wrote in the message about it, in bytes.
const maxMessage = 500

// subject is a living pod and its decision.
type subject struct {
	Pod      *corev1.Pod
	Decision policies.Decision
	Err      error // why the pod cannot be evaluated: then there is no Decision, and no quota counts the pod

	in      policies.Input
	holding quota.Holding
}

// evaluate evaluates a living pod as if it were created again: its node and status are not its author's.
func evaluate(in policies.Input, living *corev1.Pod) subject {
	pod := living.DeepCopy()
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{QOSClass: living.Status.QOSClass}
	in.Pod = pod
	given := promise.ClaimedPromise(pod)
	p := subject{Pod: pod, in: in}
	if given != nil {
		p.Decision = policies.Verify(in, given)
	} else {
		p.Decision = policies.Decide(in)
	}
	if p.Decision.Promise != nil {
		given = p.Decision.Promise
	}
	p.holding = in.GPUClaims().Total(given)
	return p
}

// unreadable is a pod that exceeds the bounds on parsed input: the webhook denies it, if it is called.
func unreadable(in policies.Input, v api.Violation, text []byte) subject {
	if !reviewed(text) {
		return subject{Pod: in.Pod, in: in, Err: errors.New(shorten.Text(v.String(), maxMessage) + "; denied if it uses a GPU")}
	}
	return subject{Pod: in.Pod, in: in, Decision: in.Deny(v)}
}

// errPanic marks an evaluation that panicked. The error's first line names the object, those after it are the stack.
var errPanic = errors.New("panic")

// recovered makes a panic an error: the other pods are evaluated all the same.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
	}
}

// forget drops all but the parts of the pod that its quota needs: a budget may have tens of thousands, of
// a megabyte each. Of its Decision, the outcome is left.
func (p *subject) forget() {
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

// withinQuota reserves for one pod after the other, the oldest first, and denies those that exceed the quota. They count in one budget.
func withinQuota(pods []subject, quotaOf func(policies.Input) (quota.Quota, error)) error {
	slices.SortStableFunc(pods, func(x, y subject) int { return x.Pod.CreationTimestamp.Compare(y.Pod.CreationTimestamp.Time) })
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
			continue
		}
		tally.Reserve(r)
	}
	return nil
}
