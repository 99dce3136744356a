// Package pods reviews pods, and the pod templates of workloads: the mutating handlers decide and rewrite, the validating
// one checks the final pod against its promise and its quota.
package pods

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// ServiceAccount is the one that the webhook runs as, in its own namespace. Nobody else writes observed tiers on a pod.
const ServiceAccount = "gpuslice-webhook"

// Handlers' names in metrics.
const (
	handlerCreate       = "pods-create"
	handlerUpdate       = "pods-update"
	handlerEphemeral    = "pods-ephemeral"
	handlerVerify       = "pods-verify"
	handlerVerifyUpdate = "pods-verify-update"
	handlerTemplate     = "templates"
)

// Source returns the inputs of decisions beside the pod: *watcher.Watcher.
type Source interface {
	// Input returns everything but the pod for a namespace: its labels, its policy, and the pools. An error means that
	// the namespace cannot be read now; a broken policy is not an error but the Input's PolicyError.
	Input(ctx context.Context, namespace string) (policies.Input, error)
	// ClaimSpecs returns the specs of the pod's claims, by the pod's names for them, without those that are not found.
	ClaimSpecs(ctx context.Context, namespace string, pod *corev1.Pod) map[string]*resourcev1.ResourceClaimSpec
}

// Options are the common parts of the handlers.
type Options struct {
	Source  Source
	Metrics *metrics.Metrics
	// Namespace is gpuslice's own, whose pods and workloads stay as they are.
	Namespace string
}

// reviewer reads reviews, and answers them with decisions that it counts and logs.
type reviewer struct {
	Options
	createHandler string // the handler's name in metrics, for new pods
}

// readNew reads a new pod, with the input of its namespace. It has an answer, or a fault, for one that cannot be read.
func (r reviewer) readNew(ctx context.Context,
	req review.Request) (in policies.Input, raw rawpod.Raw, answer *review.Answer, fault *review.Fault) {
	if len(req.Object.Raw) == 0 {
		return in, raw, nil, review.Faultf(http.StatusBadRequest, "the request has no object")
	}
	if in, fault = r.input(ctx, req.Namespace); fault != nil {
		return in, raw, nil, fault
	}
	raw, violation, err := rawpod.Decode(req.Object.Raw)
	switch {
	case err != nil:
		return in, raw, nil, review.Faultf(http.StatusBadRequest, "%v", err)
	case violation != nil:
		return in, raw, new(r.unreadable(ctx, in, *violation)), nil
	}
	if in.Pod = raw.Pod; !in.Policy.Off() { // to read claims may take a call
		in.Claims = r.Source.ClaimSpecs(ctx, req.Namespace, raw.Pod)
	}
	return in, raw, nil, nil
}

// input returns the input of a namespace.
func (r reviewer) input(ctx context.Context, namespace string) (policies.Input, *review.Fault) {
	in, err := r.Source.Input(ctx, namespace)
	if err != nil {
		return in, review.Faultf(http.StatusServiceUnavailable, "%v", err)
	}
	return in, nil
}

// oversized denies the operations on a pod that is too large to be read, and admits others.
func (r reviewer) oversized(ctx context.Context, req review.Request, operations ...admissionv1.Operation) (review.Answer, *review.Fault) {
	if !slices.Contains(operations, req.Operation) || req.Operation == admissionv1.Create && req.SubResource != "" ||
		req.Namespace == r.Namespace {
		return review.Answer{}, nil
	}
	in, fault := r.input(ctx, req.Namespace)
	if fault != nil {
		return review.Answer{}, fault
	}
	return r.unreadable(ctx, in, api.Violation{Rule: api.RuleSize, Reason: "the pod is too large",
		Detail: fmt.Sprintf("its review has more than %d bytes; a pod with GPUs may have %d containers",
			review.MaxBytes, policies.MaxContainers)}), nil
}

// unreadable answers a pod that exceeds the bounds on parsed input, as the namespace's policy would have any other
// denial.
func (r reviewer) unreadable(ctx context.Context, in policies.Input, v api.Violation) review.Answer {
	d := in.Deny(v)
	r.record(ctx, r.createHandler, d)
	return review.OfUnreadable(d)
}

// record counts and logs a decision: at info level if the pod was changed or denied, or would have been.
func (r reviewer) record(ctx context.Context, handler string, d policies.Decision) {
	r.Metrics.CountDecision(handler, d)
	log := logr.FromContextOrDiscard(ctx)
	if d.Outcome == policies.Unchanged && d.IfEnforced == policies.Unchanged {
		log = log.V(1)
	}
	log.Info("decided", "outcome", d.Outcome, "ifEnforced", d.IfEnforced, "reason", d.Reason(), "policy", d.Policy, "mode", d.Mode)
}

// reportRequested is the decision about the dry run of a pod that requests a report: the validating webhook answers it.
func reportRequested() policies.Decision {
	return policies.Decision{Outcome: policies.Unchanged, IfEnforced: policies.Unchanged, UnchangedReason: "report request"}
}

// handle answers reviews of pods: new ones by create, live ones by update.
func (r reviewer) handle(ctx context.Context, req review.Request, create, update review.HandlerFunc) (review.Answer, *review.Fault) {
	switch {
	case req.Kind != (metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}):
		return review.Answer{}, review.Faultf(http.StatusBadRequest, "only pods of v1 are reviewed here, not %s", req.Kind.Kind)
	case req.Namespace == r.Namespace: // gpuslice's own pods stay as they are
	case req.Operation == admissionv1.Create && req.SubResource == "":
		return create(ctx, req)
	case req.Operation == admissionv1.Update:
		return update(ctx, req)
	}
	return review.Answer{}, nil
}

// orZero is the answer, if there is one.
func orZero(answer *review.Answer) review.Answer {
	if answer == nil {
		return review.Answer{}
	}
	return *answer
}
