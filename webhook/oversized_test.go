package webhook

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// headReader refuses whatever is too large, with what it was told of it.
type headReader struct{ admission.HandlerFunc }

func (headReader) TooLarge(_ context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	return admission.Denied("too large in " + req.Namespace)
}

func TestAnObjectTooLargeToReadIsAnsweredByWhatNamesIt(t *testing.T) {
	handler, err := NewEndpoint("test", headReader{allowAll}, NewLimits(), NewMetrics("test"), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	large := `"object":{"spec":{"containers":["` + strings.Repeat("x", 5<<20) + `"]}}}}`
	head := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},` +
		`"resource":{"group":"","version":"v1","resource":"pods"},"namespace":"team-a","operation":"CREATE","userInfo":{"username":"a"},`
	for name, c := range map[string]struct {
		body    string
		code    int
		allowed bool
	}{
		"a new pod is refused":                    {head + large, http.StatusOK, false},
		"an update passes":                        {strings.Replace(head, "CREATE", "UPDATE", 1) + large, http.StatusOK, true},
		"what names the object comes after it":    {`{"request":{` + strings.TrimSuffix(large, "}}") + `,"uid":"u-1"}}`, http.StatusRequestEntityTooLarge, false},
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
			var review admissionv1.AdmissionReview
			if err := json.Unmarshal(got.Body.Bytes(), &review); err != nil {
				t.Fatal(err)
			}
			if review.Response.UID != "u-1" || review.Response.Allowed != c.allowed {
				t.Errorf("%s: answered %+v", name, review.Response)
			}
		}
	}
}
