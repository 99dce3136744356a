package pods

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
)

// FuzzEndpoint sends anything to the pods handler: it answers or names a status, and never panics. An answer echoes the
// uid, and its patch applies to the object that was sent.
func FuzzEndpoint(f *testing.F) {
	f.Add([]byte(sample))
	for _, object := range []string{asking("4Gi"), asking("0.0000001"), costly, `{"metadata":null,"spec":{"containers":[null]}}`} {
		f.Add(bytes.Replace([]byte(sample), []byte(`"object":{`), []byte(`"object":`+object+`,"x":{`), 1))
		f.Add(bytes.Replace([]byte(sample), []byte(`"operation":"CREATE"`), []byte(`"operation":"UPDATE","oldObject":`+object), 1))
	}
	for _, operation := range []string{"CREATE", "UPDATE"} {
		f.Add(bytes.Replace([]byte(sample), []byte(`"operation":"CREATE"`), []byte(`"operation":"`+operation+`","oldObject":{"no value"}`), 1))
	}
	source := governed(f, "mode: transparent\nstrategies: [time-slicing]\ndefaultSlice: {memory: 4Gi}\naccept: [fractional-quantity]")
	endpoint := endpoint(source, metrics.New("test"))
	f.Fuzz(func(t *testing.T, body []byte) {
		w := post(endpoint, bytes.NewReader(body))
		switch w.Code {
		case http.StatusOK:
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			return
		default:
			t.Fatalf("answered %d %s", w.Code, w.Body)
		}
		var sent, answered admissionv1.AdmissionReview
		if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &sent); err != nil || sent.Request == nil {
			t.Fatalf("answered what cannot be read: %v", err)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answered); err != nil {
			t.Fatal(err)
		}
		if answered.Response.UID != sent.Request.UID {
			t.Errorf("uid %q for %q", answered.Response.UID, sent.Request.UID)
		}
		patched(t, string(sent.Request.Object.Raw), answered.Response)
	})
}
