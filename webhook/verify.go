package webhook

import (
	"bytes"
	"context"
	"errors"
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
	case req.SubResource != "":
		return v.subresource(ctx, req)
	case req.Operation == admissionv1.Create:
		return v.create(ctx, req)
	case req.Operation == admissionv1.Update:
		return v.update(ctx, req)
	}
	return admission.Allowed("")
}

// create judges a new pod as it will be stored.
func (v *Verifier) create(ctx context.Context, req admission.Request) admission.Response {
	if len(req.Object.Raw) == 0 {
		return unanswered(http.StatusBadRequest, errors.New("the request holds no object"))
	}
	in, err := v.pods.source.Input(ctx, req.Namespace)
	if err != nil {
		return unanswered(http.StatusServiceUnavailable, err)
	}
	raw, violation, err := policies.DecodePod(req.Object.Raw)
	switch {
	case err != nil:
		return unanswered(http.StatusBadRequest, err)
	case violation != nil:
		return v.pods.unreadable(ctx, in, *violation)
	}
	in.Pod = raw.Pod
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

// update refuses what would change gpuslice's part of a live pod. The mutating webhook puts it back, so this meets only
// what got past that one. Whatever cannot be read passes: see Pods.update.
func (v *Verifier) update(ctx context.Context, req admission.Request) admission.Response {
	if len(req.Object.Raw) == 0 || len(req.OldObject.Raw) == 0 {
		return unanswered(http.StatusBadRequest, errors.New("the request holds no object, or no old one"))
	}
	name := []byte(policies.AnnotationPromise)
	if !bytes.Contains(req.OldObject.Raw, name) && !bytes.Contains(req.Object.Raw, name) {
		return admission.Allowed("")
	}
	old, tooMuch, err := policies.DecodePod(req.OldObject.Raw)
	if err != nil || tooMuch != nil {
		return admission.Allowed("")
	}
	updated, tooMuch, err := policies.DecodePod(req.Object.Raw)
	if err != nil || tooMuch != nil {
		return admission.Allowed("")
	}
	violations := policies.VerifyUpdate(v.pods.ownWrites(req, old.Pod, updated.Pod), updated.Pod)
	if len(violations) > 0 {
		return v.pods.objected(ctx, req.Namespace, violations, nil)
	}
	return v.pods.respond(ctx, handlerVerifyUpdate, leftAlone(whyUnchanged), admission.Allowed(""))
}

// TooLarge implements Oversized, as the mutating handler does.
func (v *Verifier) TooLarge(ctx context.Context, req admission.Request) admission.Response {
	return v.pods.TooLarge(ctx, req)
}
