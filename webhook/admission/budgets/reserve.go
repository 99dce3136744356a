package budgets

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

const (
	answerMargin = 1500 * time.Millisecond // of the API server's patience, for the answer's way back
	maxNotes     = 3                       // limits that a dry run is shown, among the other warnings

	// maxRetryAfter bounds the wait that an answer requests of a client. Clients of Kubernetes, controllers' among
	// them, sleep that long and retry up to ten times, in one of the few workers that a controller has for the whole
	// cluster: a quota that cannot be read for a while would hold up everybody's ReplicaSets.
	maxRetryAfter = time.Second
)

// Reserver reserves room in budgets: *ledger.Ledger.
type Reserver interface {
	Reserve(context.Context, ledger.Request) ledger.Answer
	// Read returns the ledger of a budget, and reserves nothing.
	Read(ctx context.Context, budgetKey string) (ledger.State, error)
}

// Source finds the budget of a namespace's pods: *Budgets.
type Source interface {
	For(policies.Input) NamespaceQuota
}

// Checker checks new pods against the quota of their namespace.
type Checker struct {
	Reserver Reserver
	Budgets  Source
	Metrics  *metrics.Metrics
}

// Pod is a new pod to be checked.
type Pod struct {
	policies.Input
	Promise *promise.Promise // nil: none that is to be trusted
	DryRun  bool
}

// Reserve reserves the pod's room. It returns the decision under the quota, or the answer for a caller who should
// retry: a pod is never admitted because its quota could not be read.
func (c *Checker) Reserve(ctx context.Context, pod Pod, d policies.Decision) (policies.Decision, *review.Answer) {
	if pod.Policy.Off() {
		return d, nil
	}
	counted := c.Budgets.For(pod.Input)
	notes := accounting.NativeWarnings(pod.Policy, pod.Pod, counted.Native, pod.Promise)
	if len(counted.Limits.Limits) == 0 {
		d.Warnings = append(d.Warnings, notes...)
		return d, nil
	}
	request := requestOf(ctx, pod, counted)
	answer := c.Reserver.Reserve(ctx, request)
	c.Metrics.CountQuotaRequest(answer.Decision)
	switch answer.Decision {
	case ledger.Exceeded:
		over := policies.DenyQuota(pod.Input, withHolders(request, answer))
		over.Warnings = append(over.Warnings, d.Warnings...)
		return over, nil
	case ledger.Busy:
		if pod.Policy.EnforcementMode == api.EnforceFull || counted.Limits.Native() { // Kubernetes enforces its own quotas in every mode
			return d, new(tryAgain(answer.Reason, answer.RetryAfter))
		}
		d.Warnings = append(d.Warnings, "the quota was not checked: "+answer.Reason)
	}
	d.Warnings = append(d.Warnings, notes...)
	if pod.DryRun && answer.Decision == ledger.Admitted && pod.Policy.EnforcementMode != api.EnforceAudit {
		d.Warnings = append(d.Warnings, c.remaining(ctx, counted.Budget, counted.Limits.Within(request.Holding))...)
	}
	return d, nil
}

// requestOf is the request to the ledger about a pod.
func requestOf(ctx context.Context, pod Pod, counted NamespaceQuota) ledger.Request {
	request := ledger.Request{
		Budget: counted.Budget, Quota: counted.Limits, PodUID: string(pod.Pod.UID), Name: pod.Pod.Name, NamespaceUID: counted.NamespaceUID,
		Holding: holdingOf(pod.Input, pod.Promise), DryRun: pod.DryRun,
	}
	if at, ok := ctx.Deadline(); ok {
		request.Deadline = time.Now().Add(min(time.Until(at)-answerMargin, ledger.DefaultTimeout))
	}
	return request
}

// remaining returns, for a dry run, how the limits stand that the pod counts against; nil if unknown.
func (c *Checker) remaining(ctx context.Context, budget ledger.Budget, limits quota.Quota) []string {
	state, err := c.Reserver.Read(ctx, budget.Key)
	if err != nil || !state.Covers(budget.Namespaces) {
		return nil
	}
	notes := figureNotes(state.Figures(limits))
	return notes[:min(len(notes), maxNotes)]
}

// tryAgain answers with 429, and with a time where that is short: clients then try again by themselves. Without one they
// return the error, and controllers come back later by their own queues.
func tryAgain(reason string, after time.Duration) review.Answer {
	when := "try again"
	if after > maxRetryAfter {
		when += " in " + after.Round(time.Second).String()
	}
	answer := review.Denied(metav1.StatusReasonTooManyRequests, "the quota cannot be read now: "+reason+"; "+when)
	if after <= maxRetryAfter {
		answer.Denial.RetryAfterSeconds = int32(maxRetryAfter / time.Second)
	}
	return answer
}
