package pods

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// Trust knows the Promises that gpuslice made: *keys.Keyring.
type Trust interface {
	// PromiseOf returns the Promise on the pod if it is to be trusted, else nil.
	PromiseOf(context.Context, *corev1.Pod) *promise.Promise
}

// Verifier is the validating handler of pods. CREATE: the pod is as it was promised, and its quota has room, which is
// then reserved. UPDATE: gpuslice's own fields stay as they were, and no addition to a live pod reaches out of its
// slice.
type Verifier struct {
	reviewer
	trust Trust
	quota *budgets.Checker
}

// NewVerifier makes the handler. quota nil: no quota is enforced.
func NewVerifier(options Options, trust Trust, quota *budgets.Checker) *Verifier {
	return &Verifier{reviewer: reviewer{options, handlerVerify}, trust: trust, quota: quota}
}

// Handle implements review.Handler.
func (v *Verifier) Handle(ctx context.Context, req review.Request) (review.Answer, *review.Fault) {
	return v.handle(ctx, req, v.create, v.update)
}

// HandleOversized implements review.OversizedHandler. The API server calls for updates that change gpuslice's own
// fields, and for none of a pod that is being deleted.
func (v *Verifier) HandleOversized(ctx context.Context, req review.Request) (review.Answer, *review.Fault) {
	if req.Operation == admissionv1.Update && v.ours(req) {
		return review.Answer{}, nil
	}
	return v.oversized(ctx, req, admissionv1.Create, admissionv1.Update)
}

// create verifies a new pod as it will be stored.
func (v *Verifier) create(ctx context.Context, req review.Request) (review.Answer, *review.Fault) {
	in, _, answer, fault := v.readNew(ctx, req)
	if fault != nil || answer != nil {
		return orZero(answer), fault
	}
	in.Pod.Namespace = req.Namespace // the review's is the one that counts; a pod may leave its own out
	if review.IsDryRun(req) && budgets.IsReportRequest(in.Pod) {
		v.record(ctx, handlerVerify, reportRequested())
		return v.quota.AnswerReport(ctx, in)
	}
	promised := v.trust.PromiseOf(ctx, in.Pod)
	d := policies.Verify(in, promised)
	if d.Outcome != policies.Denied && v.quota != nil { // a reservation for a denied pod would be lost for a minute
		d, answer = v.quota.Reserve(ctx, budgets.Pod{Input: in, Promise: promised, DryRun: review.IsDryRun(req)}, d)
		if answer != nil {
			return *answer, nil
		}
	}
	v.record(ctx, handlerVerify, d)
	return review.OfDecision(d, nil), nil
}
