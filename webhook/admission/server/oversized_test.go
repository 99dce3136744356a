package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// headReader denies whatever is too large.
type headReader struct{ review.HandlerFunc }

func (headReader) HandleOversized(_ context.Context, req review.Request) (review.Answer, *review.Fault) {
	if req.Operation != admissionv1.Create {
		return review.Answer{}, nil
	}
	return review.Denied(metav1.StatusReasonForbidden, "too large in "+req.Namespace), nil
}

func TestEndpointOversized(t *testing.T) {
	t.Run("an object too large to read is answered by what names it", func(t *testing.T) {
		handler := NewEndpoint("test", headReader{allowAll},
			EndpointOptions{Limits: NewLimits(), Metrics: metrics.New("test"), Log: logr.Discard()})
		large := `"object":{"spec":{"containers":["` + strings.Repeat("x", 5<<20) + `"]}}}}`
		head := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},` +
			`"resource":{"group":"","version":"v1","resource":"pods"},"namespace":"team-a","operation":"CREATE","userInfo":{"username":"a"},`
		for name, c := range map[string]struct {
			body    string
			code    int
			allowed bool
		}{
			"a new pod is denied": {head + large, http.StatusOK, false},
			"an update passes":    {strings.Replace(head, "CREATE", "UPDATE", 1) + large, http.StatusOK, true},
			"what names the object comes after it": {`{"request":{` + strings.TrimSuffix(large, "}}") + `,"uid":"u-1"}}`,
				http.StatusRequestEntityTooLarge, false},
			"no review at all":                        {strings.Repeat(" ", 5<<20), http.StatusRequestEntityTooLarge, false},
			"a head cut in the middle of a long name": {`{"request":{"uid":"` + strings.Repeat("u", 5<<20), http.StatusRequestEntityTooLarge, false},
		} {
			for _, announced := range []bool{true, false} {
				var body io.Reader = strings.NewReader(c.body)
				if !announced {
					body = io.MultiReader(body) // its length is not known beforehand
				}
				got := post(handler, body)
				if got.Code != c.code {
					t.Errorf("%s: status %d, want %d", name, got.Code, c.code)
					continue
				}
				if c.code != http.StatusOK {
					continue
				}
				var read admissionv1.AdmissionReview
				if err := json.Unmarshal(got.Body.Bytes(), &read); err != nil {
					t.Fatal(err)
				}
				if read.Response.UID != "u-1" || read.Response.Allowed != c.allowed {
					t.Errorf("%s: answered %+v", name, read.Response)
				}
			}
		}
	})
}
