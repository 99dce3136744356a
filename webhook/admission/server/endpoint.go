package server

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// maxTimeout bounds the deadline that a caller may set; the API server's own largest is 30 s.
const maxTimeout = 30 * time.Second

// EndpointOptions are common to all endpoints.
type EndpointOptions struct {
	Limits  *Limits
	Metrics *metrics.Metrics
	Log     logr.Logger
}

// endpoint answers the AdmissionReviews of one path.
type endpoint struct {
	EndpointOptions
	name    string
	handler review.Handler
}

// NewEndpoint serves a handler over HTTP under the limits. name is its label in metrics and logs.
//
// A Fault of the handler, and a panic, are answered with an HTTP status, so that the webhook's failurePolicy decides and
// not a fault of ours.
func NewEndpoint(name string, handler review.Handler, options EndpointOptions) http.Handler {
	options.Metrics.ExpectHandler(name)
	options.Log = options.Log.WithValues("handler", name)
	return &endpoint{options, name, handler}
}

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	response, fault := e.review(r)
	code := http.StatusOK
	if fault != nil {
		code = fault.Code
	}
	e.Metrics.CountReview(e.name, code, time.Since(start))
	if fault == nil {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(encodeReview(response)); err != nil {
			e.Log.V(1).Info("answer not written", "error", err.Error())
		}
		return
	}
	e.Log.Info("review not answered", "code", fault.Code, "reason", fault.Message)
	switch fault.Code {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, fault.Message, fault.Code)
}

// review takes a request through the limits to the handler.
func (e *endpoint) review(r *http.Request) (*admissionv1.AdmissionResponse, *review.Fault) {
	until := time.Now().Add(timeoutOf(r)) // the caller's patience began before it had a place here
	if fault := checkHead(r); fault != nil {
		return nil, fault
	}
	if !e.Limits.arrived.enter(r.Context(), 0) {
		return nil, busy()
	}
	defer e.Limits.arrived.leave()
	body, done, fault := e.Limits.read(r)
	defer done()
	if fault != nil && fault.Code == http.StatusRequestEntityTooLarge {
		return e.oversized(r.Context(), body, fault)
	}
	if fault != nil {
		return nil, fault
	}
	if !e.Limits.reviews.enter(r.Context(), queueWait) {
		return nil, busy()
	}
	defer e.Limits.reviews.leave()
	request, err := decodeReview(body)
	if err != nil {
		return nil, review.Faultf(http.StatusBadRequest, "%v", err)
	}
	ctx, cancel := context.WithDeadline(r.Context(), until)
	defer cancel()
	return e.handle(ctx, request)
}

// oversized answers a review that was too large by the fields before its object, if the handler can.
func (e *endpoint) oversized(ctx context.Context, head []byte, fault *review.Fault) (*admissionv1.AdmissionResponse, *review.Fault) {
	handler, ok := e.handler.(review.OversizedHandler)
	request, named := decodeHead(head)
	if !ok || !named {
		return nil, fault
	}
	answer, unanswered := handler.HandleOversized(ctx, request)
	if unanswered != nil {
		return nil, fault
	}
	return respond(request, answer)
}

// handle calls the handler; a panic becomes a Fault.
func (e *endpoint) handle(ctx context.Context, request review.Request) (response *admissionv1.AdmissionResponse, fault *review.Fault) {
	// User names stay out of the log: they are people.
	log := e.Log.WithValues("namespace", request.Namespace, "name", request.Name, "uid", request.UID)
	defer func() {
		if p := recover(); p != nil {
			e.Metrics.CountPanic()
			log.Error(nil, "handler panicked", "panic", p, "stack", string(debug.Stack()))
			response, fault = nil, review.Faultf(http.StatusInternalServerError, "the handler failed")
		}
	}()
	answer, fault := e.handler.Handle(logr.NewContext(ctx, log), request)
	if fault != nil {
		return nil, fault
	}
	return respond(request, answer)
}

func respond(request review.Request, answer review.Answer) (*admissionv1.AdmissionResponse, *review.Fault) {
	response, err := answer.Response(request.UID)
	if err != nil {
		return nil, review.Faultf(http.StatusInternalServerError, "%v", err)
	}
	return response, nil
}

// timeoutOf is how long the caller waits, by its own account.
func timeoutOf(r *http.Request) time.Duration {
	d, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || d <= 0 || d > maxTimeout {
		return maxTimeout
	}
	return d
}
