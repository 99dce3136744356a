package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

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

// endpoint answers the AdmissionReviews of one path: an admission.Webhook behind the limits, and its admission.Handler.
type endpoint struct {
	EndpointOptions
	name    string
	handler review.Handler
	webhook admission.Webhook
}

// answers are the buffers of answers. Those of slices are some 10 KB, a tenth of what a review takes.
var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// NewEndpoint serves a handler over HTTP under the limits. name is its label in metrics and logs.
//
// A Fault of the handler, and a panic, are answered with an HTTP status, so that the webhook's failurePolicy decides and
// not a fault of ours.
func NewEndpoint(name string, handler review.Handler, options EndpointOptions) http.Handler {
	options.Metrics.ExpectHandler(name)
	options.Log = options.Log.WithValues("handler", name)
	e := &endpoint{EndpointOptions: options, name: name, handler: handler}
	e.webhook = admission.Webhook{Handler: e, LogConstructor: unlogged}
	return e
}

// unlogged leaves the log to endpoint: the library would write the names of users into it, who are people.
func unlogged(logr.Logger, *admission.Request) logr.Logger { return logr.Discard() }

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	answer := answers.Get().(*bytes.Buffer)
	defer answers.Put(answer)
	answer.Reset()
	fault := e.review(r, answer)
	code := http.StatusOK
	if fault != nil {
		code = fault.Code
	}
	e.Metrics.CountReview(e.name, code, time.Since(start))
	if fault == nil {
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(answer.Bytes()); err != nil {
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

// review takes a request through the limits to the handler. The answer, an AdmissionReview, is not written to the caller yet: one
// that takes it slowly must not keep a place from others.
func (e *endpoint) review(r *http.Request, answer *bytes.Buffer) *review.Fault {
	until := time.Now().Add(timeoutOf(r)) // the caller's patience began before it had a place here
	if fault := checkHead(r); fault != nil {
		return fault
	}
	if !e.Limits.arrived.enter(r.Context(), 0) {
		return busy()
	}
	defer e.Limits.arrived.leave()
	body, done, fault := e.Limits.read(r)
	defer done()
	if fault != nil && fault.Code == http.StatusRequestEntityTooLarge {
		return e.oversized(r.Context(), body, fault, answer)
	}
	if fault != nil {
		return fault
	}
	if !e.Limits.reviews.enter(r.Context(), queueWait) {
		return busy()
	}
	defer e.Limits.reviews.leave()
	ctx, cancel := context.WithDeadline(r.Context(), until)
	defer cancel()
	left, object, old := cutObjects(body)
	return e.call(ctx, left, &called{handle: e.handler.Handle, object: object, old: old, written: answer})
}

// oversized answers a review that was too large by the fields before its object, if the handler can.
func (e *endpoint) oversized(ctx context.Context, head []byte, fault *review.Fault, answer *bytes.Buffer) *review.Fault {
	handler, ok := e.handler.(review.OversizedHandler)
	request, named := decodeHead(head)
	if !ok || !named {
		return fault
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: &request})
	if err != nil || e.call(ctx, body, &called{handle: handler.HandleOversized, written: answer}) != nil {
		return fault
	}
	return nil
}

// timeoutOf is how long the caller waits, by its own account.
func timeoutOf(r *http.Request) time.Duration {
	d, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || d <= 0 || d > maxTimeout {
		return maxTimeout
	}
	return d
}

// Handle implements admission.Handler. It notes what becomes of the review in its call, since an admission.Response with a
// status code in it is a denial to the API server.
func (e *endpoint) Handle(ctx context.Context, req admission.Request) (response admission.Response) {
	c, _ := ctx.Value(calledKey{}).(*called)
	request := req.AdmissionRequest
	// User names stay out of the log: they are people.
	log := e.Log.WithValues("namespace", request.Namespace, "name", request.Name, "uid", request.UID)
	defer func() {
		if p := recover(); p != nil {
			e.Metrics.CountPanic()
			log.Error(nil, "handler panicked", "panic", p, "stack", string(debug.Stack()))
			c.fault = review.Faultf(http.StatusInternalServerError, "the handler failed")
		}
	}()
	if c.fault = c.restore(&request); c.fault != nil {
		return response
	}
	answer, fault := c.handle(logr.NewContext(ctx, log), request)
	if c.fault = fault; fault != nil {
		return response
	}
	sent, err := answer.Response(request.UID)
	if err != nil {
		c.fault = review.Faultf(http.StatusInternalServerError, "%v", err)
		return response
	}
	c.answered = true
	return admission.Response{AdmissionResponse: *sent}
}
