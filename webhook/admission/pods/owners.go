package pods

import (
	"context"
	"encoding/json"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// Reporter reports denied pods to their owners. It must not block.
type Reporter interface {
	Denied(pod metav1.Object, text string)
}

// maxReported bounds the pods that are read once more for their owners, after the decision and before its answer.
const maxReported = 256 << 10

// ReportDenials is a handler that answers as next does, and reports each new pod that it denies. A dry run is not reported.
func ReportDenials(next review.Handler, to Reporter) review.Handler {
	return reporting{next, to}
}

type reporting struct {
	next review.Handler
	to   Reporter
}

// Handle implements review.Handler.
func (r reporting) Handle(ctx context.Context, req review.Request) (review.Answer, *review.Fault) {
	answer, fault := r.next.Handle(ctx, req)
	// A client that is to retry has not been denied anything yet.
	denied := fault == nil && answer.Denial != nil && answer.Denial.Reason != metav1.StatusReasonTooManyRequests
	if !denied || req.Operation != admissionv1.Create || req.SubResource != "" || review.IsDryRun(req) || len(req.Object.Raw) > maxReported {
		return answer, fault
	}
	var pod metav1.PartialObjectMetadata
	if json.Unmarshal(req.Object.Raw, &pod) == nil {
		pod.Namespace = req.Namespace
		r.to.Denied(&pod, answer.Denial.Message)
	}
	return answer, nil
}

// HandleOversized implements review.OversizedHandler if next does. It reports nothing: the owners are in the part that
// was not read.
func (r reporting) HandleOversized(ctx context.Context, req review.Request) (review.Answer, *review.Fault) {
	if next, ok := r.next.(review.OversizedHandler); ok {
		return next.HandleOversized(ctx, req)
	}
	return review.Answer{}, review.Faultf(http.StatusRequestEntityTooLarge, "the review is too large")
}
