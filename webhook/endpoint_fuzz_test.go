package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/gpuslice/gpuslice/policies"
)

// FuzzEndpoint sends anything to the pods handler: it answers or names a status, and never panics. An answer echoes the
// uid, and its patch applies to the object that was sent.
func FuzzEndpoint(f *testing.F) {
	f.Add([]byte(sample))
	for _, object := range []string{asking("4Gi"), asking("0.0000001"), costly, `{"metadata":null,"spec":{"containers":[null]}}`} {
		f.Add(bytes.Replace([]byte(sample), []byte(`"object":{`), []byte(`"object":`+object+`,"x":{`), 1))
		f.Add(bytes.Replace([]byte(sample), []byte(`"operation":"CREATE"`), []byte(`"operation":"UPDATE","oldObject":`+object), 1))
	}
	metrics := NewMetrics("test")
	source := governed(f, "mode: transparent\nstrategies: [time-slicing]\ndefaultSlice: {memory: 4Gi}\naccept: [fractional-quantity]")
	endpoint, err := NewEndpoint("pods", NewPods(source, nil, metrics, policies.SystemNamespace), NewLimits(), metrics, logr.Discard())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := post(endpoint, bytes.NewReader(body))
		switch w.Code {
		case http.StatusOK:
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			return
		default:
			t.Fatalf("answered %d %s", w.Code, w.Body)
		}
		request, err := decodeReview(body)
		if err != nil {
			t.Fatalf("answered what cannot be read: %v", err)
		}
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
			t.Fatal(err)
		}
		if review.Response.UID != request.UID {
			t.Errorf("uid %q for %q", review.Response.UID, request.UID)
		}
		patched(t, string(request.Object.Raw), review.Response)
	})
}
