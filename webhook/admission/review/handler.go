// Package review is the contract between a server of AdmissionReviews and its handlers: a Request goes in; an Answer
// about the object comes out, or a Fault without one.
package review

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
)

// MaxBytes bounds the body of a review. A pod of 2.85 MiB can arrive as a review of 30 MiB (defaults are filled in), and
// typed decoding of 3 MiB of empty list items takes up to 2 GiB.
const MaxBytes = 4 << 20

// Request is the request of an AdmissionReview.
type Request = admissionv1.AdmissionRequest

// Handler reviews the objects of one path. Its Answer counts only where the Fault is nil.
type Handler interface {
	Handle(context.Context, Request) (Answer, *Fault)
}

// OversizedHandler is a Handler that can answer for an object too large to be read, by its name. Without an answer the
// failurePolicy decides, and one that fails open would admit an object too large to be checked.
type OversizedHandler interface {
	HandleOversized(context.Context, Request) (Answer, *Fault)
}

// HandlerFunc is a Handler.
type HandlerFunc func(context.Context, Request) (Answer, *Fault)

// Handle implements Handler.
func (f HandlerFunc) Handle(ctx context.Context, req Request) (Answer, *Fault) { return f(ctx, req) }

// Fault is why a request gets an HTTP status instead of an answer. The API server then applies its failurePolicy, which it
// never does to a denial.
type Fault struct {
	Code    int // HTTP
	Message string
}

// Faultf makes a Fault.
func Faultf(code int, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// IsDryRun reports whether nothing will be stored, whatever the answer.
func IsDryRun(req Request) bool { return req.DryRun != nil && *req.DryRun }
