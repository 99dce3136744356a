package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// maxAsked bounds the deadline that a caller may set; the API server's own largest is 30 s.
const maxAsked = 30 * time.Second

// endpoint answers the AdmissionReviews of one path.
type endpoint struct {
	name    string
	hook    *admission.Webhook
	limits  *Limits
	metrics *Metrics
	log     logr.Logger
}

// NewEndpoint serves a handler over HTTP under the limits. name is its label in metrics and logs.
//
// A response that neither allows nor refuses (any code but 403, 422 and 429 on one that is not allowed), and a panic, are
// answered with an HTTP status, so that the webhook's failurePolicy decides and not a fault of ours.
func NewEndpoint(name string, handler admission.Handler, limits *Limits, metrics *Metrics, log logr.Logger) (http.Handler, error) {
	hook := &admission.Webhook{Handler: handler, RecoverPanic: new(bool), LogConstructor: requestLog}
	metrics.expect(name)
	log = log.WithValues("handler", name)
	if _, err := admission.StandaloneWebhook(hook, admission.StandaloneOptions{Logger: log}); err != nil {
		return nil, err
	}
	return &endpoint{name: name, hook: hook, limits: limits, metrics: metrics, log: log}, nil
}

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	response, fail := e.review(r)
	e.metrics.answered(e.name, fail, time.Since(start))
	if fail == nil {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer(response)); err != nil {
			e.log.V(1).Info("answer not written", "error", err.Error())
		}
		return
	}
	e.log.Info("review not answered", "code", fail.code, "why", fail.text)
	switch fail.code {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, fail.text, fail.code)
}

// review takes a request through the limits to the handler.
func (e *endpoint) review(r *http.Request) (admission.Response, *failure) {
	until := time.Now().Add(asked(r)) // the caller's patience began before it had a place here
	if fail := checkHead(r); fail != nil {
		return admission.Response{}, fail
	}
	if !e.limits.arrived.enter(r.Context(), 0) {
		return admission.Response{}, busy()
	}
	defer e.limits.arrived.leave()
	body, done, fail := e.limits.read(r)
	defer done()
	if fail != nil {
		return e.oversized(r.Context(), fail)
	}
	if !e.limits.reviews.enter(r.Context(), queueWait) {
		return admission.Response{}, busy()
	}
	defer e.limits.reviews.leave()
	request, err := decodeReview(body)
	if err != nil {
		return admission.Response{}, failf(http.StatusBadRequest, "%v", err)
	}
	ctx, cancel := context.WithDeadline(r.Context(), until)
	defer cancel()
	return e.handle(ctx, request)
}

// Oversized is a handler that can answer for an object too large to be read, by what names it. Without an answer the
// failurePolicy decides, and one that fails open would let through what is too large to be looked at.
type Oversized interface {
	TooLarge(context.Context, admission.Request) admission.Response
}

// oversized answers a review that was too large by what stands before its object, where the handler can.
func (e *endpoint) oversized(ctx context.Context, fail *failure) (admission.Response, *failure) {
	handler, ok := e.hook.Handler.(Oversized)
	request, named := decodeHead(fail.head)
	if !ok || !named {
		return admission.Response{}, fail
	}
	response := handler.TooLarge(ctx, request)
	response.UID = request.UID
	if response.Allowed || response.Result.Code == http.StatusForbidden || response.Result.Code == http.StatusUnprocessableEntity {
		return response, nil
	}
	return response, fail
}

// handle asks the handler and turns what is no answer into a failure.
func (e *endpoint) handle(ctx context.Context, request admission.Request) (response admission.Response, fail *failure) {
	defer func() {
		if p := recover(); p != nil {
			e.metrics.panics.Inc()
			e.log.Error(nil, "handler panicked", "panic", p, "uid", request.UID, "stack", string(debug.Stack()))
			fail = failf(http.StatusInternalServerError, "the handler failed")
		}
	}()
	response = e.hook.Handle(ctx, request)
	refusals := []int32{http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusTooManyRequests}
	if response.Allowed || slices.Contains(refusals, response.Result.Code) {
		return response, nil
	}
	return response, failf(int(response.Result.Code), "%s", response.Result.Message)
}

// asked is how long the caller says that it waits.
func asked(r *http.Request) time.Duration {
	d, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || d <= 0 || d > maxAsked {
		return maxAsked
	}
	return d
}

// requestLog names the object under review. User names stay out: they are people.
func requestLog(base logr.Logger, req *admission.Request) logr.Logger {
	if req == nil {
		return base
	}
	return base.WithValues("namespace", req.Namespace, "name", req.Name, "uid", req.UID)
}
