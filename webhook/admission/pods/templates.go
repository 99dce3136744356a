package pods

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// Templates is the small mutating handler of workloads: a fractional quantity in a pod template is denied by the API
// server in words that do not help, and before any validating webhook is called. This one names the remedy.
// It also warns of labels without effect: the warnings about a workload's pods reach its controller alone.
type Templates struct {
	reviewer
}

// NewTemplates makes the handler.
func NewTemplates(options Options) *Templates { return &Templates{reviewer{options, handlerTemplate}} }

// Handle implements review.Handler.
func (t *Templates) Handle(ctx context.Context, req review.Request) (review.Answer, *review.Fault) {
	written := req.Operation == admissionv1.Create || req.Operation == admissionv1.Update
	if !written || req.SubResource != "" || req.Namespace == t.Namespace {
		return review.Answer{}, nil
	}
	if len(req.Object.Raw) == 0 {
		return review.Answer{}, review.Faultf(http.StatusBadRequest, "the request has no object")
	}
	in, fault := t.input(ctx, req.Namespace)
	if fault != nil || in.PolicyError != nil {
		return review.Answer{}, fault
	}
	var tree map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(req.Object.Raw, &tree); err != nil {
		return review.Answer{}, review.Faultf(http.StatusBadRequest, "%v", err)
	}
	d, patch := policies.Template(in, req.Kind.Kind, tree)
	t.record(ctx, handlerTemplate, d)
	return review.OfDecision(d, patch), nil
}
