package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// sample is a review as the API server sends it, of a pod without anything special.
const sample = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{` +
	`"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","kind":{"group":"","version":"v1","kind":"Pod"},` +
	`"resource":{"group":"","version":"v1","resource":"pods"},"namespace":"team-a","operation":"CREATE",` +
	`"userInfo":{"username":"jane"},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"train-",` +
	`"namespace":"team-a"},"spec":{"containers":[{"name":"trainer","image":"pytorch"}]}},"oldObject":null,"dryRun":false}}`

// allowAll answers every review it is asked.
func allowAll(context.Context, review.Request) (review.Answer, *review.Fault) {
	return review.Answer{}, nil
}

// serveHandler serves a handler behind fresh limits.
func serveHandler(t *testing.T, handler review.HandlerFunc) http.Handler {
	t.Helper()
	return NewEndpoint("test", handler, EndpointOptions{Limits: NewLimits(), Metrics: metrics.New("test"), Log: logr.Discard()})
}

// post sends a body as the API server does.
func post(handler http.Handler, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, PathMutatePods+"?timeout=3s", body)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func TestEndpoint(t *testing.T) {
	t.Run("a review is answered with its UID and version", func(t *testing.T) {
		t.Parallel()
		w := post(serveHandler(t, allowAll), strings.NewReader(sample))
		var reviewed admissionv1.AdmissionReview
		if err := json.Unmarshal(w.Body.Bytes(), &reviewed); err != nil {
			t.Fatal(err)
		}
		if w.Code != http.StatusOK || reviewed.APIVersion != "admission.k8s.io/v1" || reviewed.Kind != "AdmissionReview" {
			t.Errorf("answer is %d %s %s", w.Code, reviewed.APIVersion, reviewed.Kind)
		}
		if reviewed.Response == nil || !reviewed.Response.Allowed || reviewed.Response.UID != "705ab4f5-6393-11e8-b7cc-42010a800002" {
			t.Errorf("response is %+v", reviewed.Response)
		}
	})
	t.Run("the content type may name a charset", func(t *testing.T) {
		t.Parallel()
		r := httptest.NewRequest(http.MethodPost, PathMutatePods, strings.NewReader(sample))
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		w := httptest.NewRecorder()
		serveHandler(t, allowAll).ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("answered %d %q", w.Code, w.Body)
		}
	})
	t.Run("the caller's timeout bounds the handler", func(t *testing.T) {
		t.Parallel()
		bounded := false
		post(serveHandler(t, func(ctx context.Context, _ review.Request) (review.Answer, *review.Fault) {
			_, bounded = ctx.Deadline()
			return review.Answer{}, nil
		}), strings.NewReader(sample))
		if !bounded {
			t.Error("the handler's context has no deadline")
		}
	})
}

func TestEndpointUnreadable(t *testing.T) {
	abuse.Report(t,
		abuse.Attempt{Threat: "A25", Attack: "forged and unreadable reviews", Outcome: abuse.Denied, Words: "answered with a denial"})
	t.Parallel()
	change := func(old, updated string) func(*http.Request) {
		return func(r *http.Request) { setBody(r, strings.Replace(sample, old, updated, 1)) }
	}
	for name, tt := range map[string]struct {
		edit func(*http.Request)
		code int
	}{
		"GET is not a review":         {func(r *http.Request) { r.Method = http.MethodGet }, 405},
		"PUT is not a review":         {func(r *http.Request) { r.Method = http.MethodPut }, 405},
		"YAML is not read":            {func(r *http.Request) { r.Header.Set("Content-Type", "application/yaml") }, 415},
		"no content type is not read": {func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		"gzip is not read":            {gzipped, 415},
		"an empty body":               {func(r *http.Request) { setBody(r, "") }, 400},
		"null":                        {func(r *http.Request) { setBody(r, "null") }, 400},
		"what is no JSON":             {func(r *http.Request) { setBody(r, "kind: AdmissionReview") }, 400},
		"no JSON, but braces":         {func(r *http.Request) { setBody(r, "{kind: AdmissionReview}") }, 400},
		"a list":                      {func(r *http.Request) { setBody(r, "[]") }, 400},
		"two documents":               {func(r *http.Request) { setBody(r, sample+sample) }, 400},
		"20,000 levels":               {func(r *http.Request) { setBody(r, strings.Repeat("[", 20000)) }, 400},
		"no request": {func(r *http.Request) { setBody(r, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`) },
			400},
		"no uid":           {change(`"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",`, ""), 400},
		"a uid of 4 KiB":   {change("705ab4f5", strings.Repeat("7", 4096)), 400},
		"8 MiB, announced": {func(r *http.Request) { setBody(r, strings.Repeat(" ", 8<<20)) }, 413},
		"8 MiB, in chunks": {func(r *http.Request) { setBody(r, strings.Repeat(" ", 8<<20)); r.ContentLength = -1 }, 413},
		"8 MiB, announced as 10 bytes by a lying proxy": {func(r *http.Request) { setBody(r, strings.Repeat(" ", 8<<20)); r.ContentLength = 10 },
			413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, PathMutatePods, nil)
			r.Header.Set("Content-Type", "application/json")
			setBody(r, sample)
			tt.edit(r)
			w := httptest.NewRecorder()
			serveHandler(t, func(context.Context, review.Request) (review.Answer, *review.Fault) {
				t.Error("the handler was asked")
				return review.Answer{}, nil
			}).ServeHTTP(w, r)
			if w.Code != tt.code {
				t.Errorf("answered %d %q, want %d", w.Code, w.Body, tt.code)
			}
		})
	}
}

// TestEndpointForeign holds the endpoint to less than what the library takes by itself.
func TestEndpointForeign(t *testing.T) {
	abuse.Report(t, abuse.Attempt{Threat: "A38", Attack: "reviews in YAML and by PUT", Outcome: abuse.Denied,
		Words: "answered with an HTTP error"})
	text, err := yaml.JSONToYAML([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		method, body string
		code         int
	}{
		"YAML is not read":            {http.MethodPost, string(text), http.StatusBadRequest},
		"a PUT is no review":          {http.MethodPut, sample, http.StatusMethodNotAllowed},
		"a panic's text is not shown": {http.MethodPost, sample, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			send := func(handler http.Handler) *httptest.ResponseRecorder {
				r := httptest.NewRequest(tt.method, PathMutatePods, strings.NewReader(tt.body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				return w
			}
			alone := &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
				panic("boom")
			})}
			if w := send(alone); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "boom") {
				t.Errorf("the library asks no handler: this test shows nothing: %d %s", w.Code, w.Body)
			}
			w := send(serveHandler(t, func(context.Context, review.Request) (review.Answer, *review.Fault) { panic("boom") }))
			if w.Code != tt.code || strings.Contains(w.Body.String(), "boom") {
				t.Errorf("answered %d %q, want %d", w.Code, w.Body, tt.code)
			}
		})
	}
}

func TestEndpointTruncated(t *testing.T) {
	t.Run("a review cut at any byte is not answered", func(t *testing.T) {
		t.Parallel()
		handler := serveHandler(t, allowAll)
		for cut := range len(sample) {
			if w := post(handler, strings.NewReader(sample[:cut])); w.Code != http.StatusBadRequest {
				t.Errorf("cut at %d: answered %d", cut, w.Code)
			}
		}
	})
}

func TestEndpointFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		handler review.HandlerFunc
		code    int
	}{
		"a panic is a status, so that failurePolicy decides": {
			func(context.Context, review.Request) (review.Answer, *review.Fault) { panic("boom") }, 500,
		},
		"a panic with an error too": {
			func(context.Context, review.Request) (review.Answer, *review.Fault) { panic(io.EOF) }, 500,
		},
		"a namespace that cannot be read is a status": {func(context.Context, review.Request) (review.Answer, *review.Fault) {
			return review.Answer{}, review.Faultf(http.StatusServiceUnavailable, "%v", io.EOF)
		}, 503},
		"a patch that cannot be encoded is a status": {func(context.Context, review.Request) (review.Answer, *review.Fault) {
			return review.Answer{Patch: []jsonpatch.Operation{unencodable()}}, nil
		}, 500},
		"a denial is an answer": {func(context.Context, review.Request) (review.Answer, *review.Fault) {
			return review.Denied(metav1.StatusReasonForbidden, "no"), nil
		}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if w := post(serveHandler(t, tt.handler), strings.NewReader(sample)); w.Code != tt.code {
				t.Errorf("answered %d %q, want %d", w.Code, w.Body, tt.code)
			}
		})
	}
}

func setBody(r *http.Request, text string) {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
}

func gzipped(r *http.Request) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, sample)
	_ = w.Close()
	setBody(r, b.String())
	r.Header.Set("Content-Encoding", "gzip")
}
