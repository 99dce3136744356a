package webhook

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/policies"
)

// The validating handler's names in metrics and logs.
const (
	handlerVerify       = "pods-verify"
	handlerVerifyUpdate = "pods-verify-update"
)

// Trust tells the Promises that gpuslice made.
type Trust interface {
	// PromiseOf returns the Promise on the pod if it is to be trusted, else nil.
	PromiseOf(context.Context, *corev1.Pod) *policies.Promise
}

// Verifier is the validating handler of pods. CREATE: the pod is as it was promised, and its quota has room, which is
// then reserved. UPDATE: what is gpuslice's stays as it was, and nothing that is added to a live pod reaches out of its slice.
type Verifier struct {
	pods  *Pods
	trust Trust
	quota *Quota
}

// NewVerifier makes the handler beside the mutating one, with whom it shares source and metrics. quota nil: no quota is
// held.
func NewVerifier(pods *Pods, trust Trust, quota *Quota) *Verifier {
	return &Verifier{pods: pods, trust: trust, quota: quota}
}

// Handle implements admission.Handler.
func (v *Verifier) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Kind != (metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}) {
		return unanswered(http.StatusBadRequest, fmt.Errorf("only pods of v1 are reviewed here, not %s", req.Kind.Kind))
	}
	switch {
	case req.Namespace == v.pods.system:
		return admission.Allowed("")
	case req.Operation == admissionv1.Create && req.SubResource == "":
		return v.create(ctx, req)
	case req.Operation == admissionv1.Update:
		return v.update(ctx, req)
	}
	return admission.Allowed("")
}

// create judges a new pod as it will be stored.
func (v *Verifier) create(ctx context.Context, req admission.Request) admission.Response {
	in, _, answer := v.pods.createOf(ctx, req)
	if answer != nil {
		return *answer
	}
	in.Pod.Namespace = req.Namespace // the review's is the one that counts; a pod may leave its own out
	if asksReport(req, in.Pod) {
		return v.tell(ctx, in)
	}
	promise := v.trust.PromiseOf(ctx, in.Pod)
	d := policies.Verify(in, promise)
	if d.Outcome == policies.Refused || v.quota == nil {
		return v.pods.respond(ctx, handlerVerify, d, respond(d, nil))
	}
	d, busy := v.quota.reserve(ctx, req, in, promise, d)
	if busy != nil {
		return *busy
	}
	return v.pods.respond(ctx, handlerVerify, d, respond(d, nil))
}

// TooLarge implements Oversized, as the mutating handler does.
func (v *Verifier) TooLarge(ctx context.Context, req admission.Request) admission.Response {
	return v.pods.TooLarge(ctx, req)
}
