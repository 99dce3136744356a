package webhook

import (
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// answerMargin is what is left of the API server's patience for the answer's way back.
const answerMargin = 1500 * time.Millisecond

// Room is what reserves it: *ledger.Ledger.
type Reserver interface {
	Reserve(context.Context, ledger.Request) ledger.Answer
	// Look returns what a budget's ledger says, and reserves nothing.
	Read(ctx context.Context, budgetKey string) (ledger.State, error)
}

// Budgets knows what the pods of a namespace are counted in, and held against.
type Budgets interface {
	// Budget returns the budget, the quota and the namespace's UID (empty: not known). A Quota without limits: nothing
	// is counted.
	Budget(in policies.Input) (ledger.Budget, policies.Quota, string)
	// Native returns the limits that ResourceQuotas set on GPU resources in the namespace.
	Native(namespace string) []policies.NativeQuota
}

// Quota reserves what new pods will hold.
type Quota struct {
	Reserver Reserver
	Budgets  Budgets
	Metrics  *Metrics
}

// reserve asks for the pod's room. It returns the decision with what the quota makes of it, or the answer for a caller
// who should ask again: a pod is never let in because its quota could not be read.
func (q *Quota) reserve(ctx context.Context, req admission.Request, in policies.Input, promise *policies.Promise, d policies.Decision) (policies.Decision, *admission.Response) {
	if in.Policy == nil || in.Policy.Mode == policies.ModeOff {
		return d, nil
	}
	budget, quota, uid := q.Budgets.Budget(in)
	notes := policies.NativeWarnings(in.Policy, q.Budgets.Native(in.Namespace.Name), in.Pod, promise)
	if len(quota.Limits) == 0 {
		d.Warnings = append(d.Warnings, notes...)
		return d, nil
	}
	request := ledger.Request{
		Budget: budget, Quota: quota, PodUID: string(in.Pod.UID), Name: in.Pod.Name, NamespaceUID: uid,
		Holding: held(in, promise), DryRun: dryRun(req),
	}
	if at, ok := ctx.Deadline(); ok {
		request.Deadline = minTime(at.Add(-answerMargin), time.Now().Add(ledger.DefaultTimeout))
	}
	answer := q.Reserver.Reserve(ctx, request)
	q.Metrics.asked(answer.Decision)
	switch answer.Decision {
	case ledger.Exceeded:
		over := policies.DenyQuota(in, answer.Excess)
		over.Warnings = append(over.Warnings, d.Warnings...)
		return over, nil
	case ledger.Busy:
		if in.Policy.EnforcementMode == policies.EnforceFull || quota.Native() {
			return d, tryAgain(answer)
		}
		d.Warnings = append(d.Warnings, "the quota was not looked at: "+answer.Reason)
	}
	d.Warnings = append(d.Warnings, notes...)
	if request.DryRun && answer.Decision == ledger.Admitted && in.Policy.EnforcementMode != policies.EnforceAudit {
		d.Warnings = append(d.Warnings, q.left(ctx, budget, quota.Within(request.Holding))...)
	}
	return d, nil
}

// left tells whoever tries a pod out how the limits stand that it counts in. Where it cannot be told, nothing is said.
func (q *Quota) left(ctx context.Context, budget ledger.Budget, quota policies.Quota) []string {
	state, err := q.Reserver.Read(ctx, budget.Key)
	if err != nil || !state.Covers(budget.Namespaces) {
		return nil
	}
	notes := policies.QuotaNotes(state.Figures(quota))
	return notes[:min(len(notes), maxNotes)]
}

// maxNotes bounds the limits that a dry-run is told of, among the other warnings.
const maxNotes = 3

// held is what the pod will hold. In audit mode, where pods stay as they are, it is what they would hold in a slice.
func held(in policies.Input, promise *policies.Promise) policies.Holding {
	if promise == nil && in.Policy.EnforcementMode == policies.EnforceAudit {
		promise = policies.Decide(in).Promise
	}
	if promise != nil {
		return promise.Holding(in.Pod)
	}
	h, _ := policies.ExclusiveHolding(in.Pod, in.Pools)
	return h
}

// soon is how long a caller may be told to wait in its own client. Clients of Kubernetes, controllers' among them, sleep
// for as long as an answer says and ask up to ten times, in one of the few workers that a controller has for the whole
// cluster: a quota that cannot be told for a while would hold up everybody's ReplicaSets.
const soon = time.Second

// tryAgain answers with 429, and with a time where that is short: clients then try again by themselves. Without one
// they return the error, and controllers come back later by their own queues.
func tryAgain(a ledger.Answer) *admission.Response {
	when := "try again"
	if a.RetryAfter > soon {
		when += " in " + a.RetryAfter.Round(time.Second).String()
	}
	response := admission.Denied(clean("the quota cannot be told now: "+a.Reason+"; "+when, maxMessage))
	response.Result.Code, response.Result.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	if a.RetryAfter <= soon {
		response.Result.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(soon / time.Second)}
	}
	return &response
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
