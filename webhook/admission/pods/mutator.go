package pods

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// Mutator is the mutating handler of pods: CREATE decides and rewrites, UPDATE restores gpuslice's own fields, and
// ephemeral containers get no device.
type Mutator struct {
	reviewer
	keys func() promise.Keys
}

// NewMutator makes the handler, which signs Promises with the keys (nil: it does not sign).
func NewMutator(options Options, keys func() promise.Keys) *Mutator {
	if keys == nil {
		keys = func() promise.Keys { return promise.Keys{} }
	}
	return &Mutator{reviewer: reviewer{options, handlerCreate}, keys: keys}
}

// Handle implements review.Handler.
func (m *Mutator) Handle(ctx context.Context, req review.Request) (review.Answer, *review.Fault) {
	return m.handle(ctx, req, m.create, m.update)
}

// HandleOversized implements review.OversizedHandler.
func (m *Mutator) HandleOversized(ctx context.Context, req review.Request) (review.Answer, *review.Fault) {
	return m.oversized(ctx, req, admissionv1.Create)
}

// create answers a new pod.
func (m *Mutator) create(ctx context.Context, req review.Request) (review.Answer, *review.Fault) {
	in, raw, answer, fault := m.readNew(ctx, req)
	if fault != nil || answer != nil {
		return orZero(answer), fault
	}
	if review.IsDryRun(req) && budgets.IsReportRequest(raw.Pod) {
		m.record(ctx, handlerCreate, reportRequested())
		return review.OfDecision(reportRequested(), nil), nil
	}
	d, patch := policies.Create(in, raw, m.keys())
	m.record(ctx, handlerCreate, d)
	return review.OfDecision(d, patch), nil
}
