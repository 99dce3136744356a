package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// maxUID bounds the UID, which the answer and the log repeat; the API server sends 36 characters.
const maxUID = 128

// called is one call of an admission.Webhook, and the ResponseWriter that it writes to. Until the handler has answered, all
// that the library writes is a denial of its own making, of a panic or of a body that it cannot read: those become a Fault.
type called struct {
	handle      func(context.Context, review.Request) (review.Answer, *review.Fault)
	object, old []byte // cut out of the review; nil: there is none
	answered    bool   // what is written is the handler's answer
	fault       *review.Fault
	written     *bytes.Buffer
}

// calledKey is the key of the *called in the context of a review.
type calledKey struct{}

// asJSON are the headers that the library reads. It knows no charset.
var asJSON = http.Header{"Content-Type": {"application/json"}}

// call has the library read a review without its objects, call the handler, and write the answer.
func (e *endpoint) call(ctx context.Context, body []byte, c *called) *review.Fault {
	// What is no JSON the library would read as YAML, without a bound on what that takes.
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return review.Faultf(http.StatusBadRequest, "read AdmissionReview: the body is no JSON object")
	}
	r := http.Request{Header: asJSON, Body: io.NopCloser(bytes.NewReader(body))}
	e.webhook.ServeHTTP(c, r.WithContext(context.WithValue(ctx, calledKey{}, c)))
	if c.fault == nil && !c.answered {
		return c.failed()
	}
	return c.fault
}

// restore puts the objects back into a request that the library has read, and checks it.
func (c *called) restore(request *review.Request) *review.Fault {
	if request.UID == "" || len(request.UID) > maxUID {
		return review.Faultf(http.StatusBadRequest, "the AdmissionReview has no request with a usable uid")
	}
	// A new object is read by its handler. A changed one may be admitted unread.
	created := request.Operation == admissionv1.Create && request.SubResource == ""
	if c.old != nil && !json.Valid(c.old) || c.object != nil && !created && !json.Valid(c.object) {
		return review.Faultf(http.StatusBadRequest, "read AdmissionReview: an object under review is no JSON")
	}
	if c.object != nil {
		request.Object.Raw = c.object
	}
	if c.old != nil {
		request.OldObject.Raw = c.old
	}
	return nil
}

// failed is the denial that the library wrote, as a Fault.
func (c *called) failed() *review.Fault {
	var written admissionv1.AdmissionReview
	err := json.Unmarshal(c.written.Bytes(), &written)
	if err != nil || written.Response == nil || written.Response.Result == nil || written.Response.Result.Code < http.StatusBadRequest {
		return review.Faultf(http.StatusInternalServerError, "the review could not be answered")
	}
	return review.Faultf(int(written.Response.Result.Code), "%s", written.Response.Result.Message)
}

// Header implements http.ResponseWriter.
func (c *called) Header() http.Header { return http.Header{} }

// Write implements http.ResponseWriter.
func (c *called) Write(p []byte) (int, error) { return c.written.Write(p) }

// WriteHeader implements http.ResponseWriter. The library writes none.
func (c *called) WriteHeader(int) {}
