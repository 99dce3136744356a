package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/policies"
)

// whyAsked is why a request is left alone that is a question: only the edge knows a dry run.
const whyAsked = "a question and no pod"

// Handlers' names in metrics and logs.
const (
	handlerCreate    = "pods-create"
	handlerUpdate    = "pods-update"
	handlerEphemeral = "pods-ephemeral"
	handlerTemplate  = "templates"
)

// Pods is the mutating handler of pods: CREATE decides and rewrites, UPDATE restores what is gpuslice's,
// and ephemeral containers get no device.
type Pods struct {
	source  Source
	keys    func() policies.Keys
	metrics *Metrics
	system  string
}

// NewPods makes the handler, which signs Promises with the keys (nil: it does not sign). Pods of the namespace system,
// gpuslice's own, are left alone.
func NewPods(source Source, keys func() policies.Keys, metrics *Metrics, system string) *Pods {
	if keys == nil {
		keys = func() policies.Keys { return policies.Keys{} }
	}
	return &Pods{source: source, keys: keys, metrics: metrics, system: system}
}

// Handle implements admission.Handler.
func (p *Pods) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Kind != (metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}) {
		return unanswered(http.StatusBadRequest, fmt.Errorf("only pods of v1 are reviewed here, not %s", req.Kind.Kind))
	}
	switch {
	case req.Namespace == p.system:
	case req.Operation == admissionv1.Create && req.SubResource == "":
		return p.create(ctx, req)
	case req.Operation == admissionv1.Update:
		return p.update(ctx, req)
	}
	return admission.Allowed("")
}

// create answers a new pod.
func (p *Pods) create(ctx context.Context, req admission.Request) admission.Response {
	in, raw, answer := p.createOf(ctx, req)
	if answer != nil {
		return *answer
	}
	if asksReport(req, raw.Pod) {
		d := leftAlone(whyAsked)
		return p.respond(ctx, handlerCreate, d, respond(d, nil))
	}
	d, patch := policies.Create(in, raw, p.keys())
	return p.respond(ctx, handlerCreate, d, respond(d, patch))
}

// createOf reads a new pod, with what governs its namespace.
func (p *Pods) createOf(ctx context.Context, req admission.Request) (in policies.Input, raw policies.RawPod, answer *admission.Response) {
	give := func(r admission.Response) (policies.Input, policies.RawPod, *admission.Response) { return in, raw, &r }
	if len(req.Object.Raw) == 0 {
		return give(unanswered(http.StatusBadRequest, errors.New("the request holds no object")))
	}
	in, err := p.source.Input(ctx, req.Namespace)
	if err != nil {
		return give(unanswered(http.StatusServiceUnavailable, err))
	}
	raw, violation, err := policies.DecodePod(req.Object.Raw)
	switch {
	case err != nil:
		return give(unanswered(http.StatusBadRequest, err))
	case violation != nil:
		return give(p.unreadable(ctx, in, *violation))
	}
	in.Pod = raw.Pod
	return in, raw, nil
}

// TooLarge implements Oversized: a new pod that is too large to be read is refused; an update passes, since it must
// never block a finalizer or a deletion.
func (p *Pods) TooLarge(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create || req.SubResource != "" || req.Namespace == p.system {
		return admission.Allowed("")
	}
	in, err := p.source.Input(ctx, req.Namespace)
	if err != nil {
		return unanswered(http.StatusServiceUnavailable, err)
	}
	return p.unreadable(ctx, in, policies.Violation{Rule: policies.RuleSize, Reason: "the pod is too large",
		Detail: fmt.Sprintf("its review has more than %d bytes; a pod with GPUs may have %d containers", maxReview, policies.MaxContainers)})
}

// unreadable answers a pod that is beyond the bounds of what is parsed, as the namespace's policy would have any other
// refusal.
func (p *Pods) unreadable(ctx context.Context, in policies.Input, v policies.Violation) admission.Response {
	d := policies.Deny(in, v)
	if d.Outcome != policies.Refused {
		return p.respond(ctx, handlerCreate, d, respond(d, nil))
	}
	response := refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, d)
	response.AuditAnnotations = audit(d)
	return p.respond(ctx, handlerCreate, d, response)
}

// respond counts and logs a decision on its way out.
func (p *Pods) respond(ctx context.Context, handler string, d policies.Decision, response admission.Response) admission.Response {
	p.metrics.decided(handler, d)
	logDecision(ctx, d)
	return response
}

// logDecision writes what was decided: at info what changed or was refused, or would have been.
func logDecision(ctx context.Context, d policies.Decision) {
	log := logf.FromContext(ctx)
	if d.Outcome == policies.LeftAlone && d.Would == policies.LeftAlone {
		log = log.V(1)
	}
	log.Info("decided", "outcome", d.Outcome, "would", d.Would, "reason", d.Reason(), "policy", d.Policy, "mode", d.Mode)
}
