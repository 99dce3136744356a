package webhook

import (
	"context"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/policies"
)

// Templates is the small mutating handler of workloads: a fractional quantity in a pod template is refused by the API
// server with words that do not help, and before any validating webhook is asked. This one says what to write instead.
type Templates struct {
	source  Source
	metrics *Metrics
	system  string
}

// NewTemplates makes the handler. Workloads of the namespace system are left alone.
func NewTemplates(source Source, metrics *Metrics, system string) *Templates {
	return &Templates{source: source, metrics: metrics, system: system}
}

// Handle implements admission.Handler.
func (t *Templates) Handle(ctx context.Context, req admission.Request) admission.Response {
	asksHere := req.Operation == admissionv1.Create || req.Operation == admissionv1.Update
	if !asksHere || req.SubResource != "" || req.Namespace == t.system {
		return admission.Allowed("")
	}
	if len(req.Object.Raw) == 0 {
		return unanswered(http.StatusBadRequest, errors.New("the request holds no object"))
	}
	in, err := t.source.Input(ctx, req.Namespace)
	if err != nil {
		return unanswered(http.StatusServiceUnavailable, err)
	}
	if in.Policy == nil {
		return admission.Allowed("")
	}
	var tree map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(req.Object.Raw, &tree); err != nil {
		return unanswered(http.StatusBadRequest, err)
	}
	d, patch := policies.Template(in, req.Kind.Kind, tree)
	t.metrics.decided(handlerTemplate, d)
	logDecision(ctx, d)
	return respond(d, patch)
}
