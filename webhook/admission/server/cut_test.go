package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

func TestCutObjects(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][3]string{
		`{"request":{"object":{"a":"}"},"oldObject":null,"uid":"u"}}`: {`{"request":{"object":null,"oldObject":null,"uid":"u"}}`,
			`{"a":"}"}`, ""},
		`{"request": {"oldObject" : {"object":{"b":[{}]}}}}`:     {`{"request": {"oldObject" : null}}`, "", `{"object":{"b":[{}]}}`},
		`{"object":{"a":1},"request":{"options":{"object":{}}}}`: {`{"object":{"a":1},"request":{"options":{"object":{}}}}`, "", ""},
		`{"request":{"name":"object","userInfo":{"extra":{}}}}`:  {`{"request":{"name":"object","userInfo":{"extra":{}}}}`, "", ""},
		`{"request":[{"object":{}}],"x":{"object":{}}}`:          {`{"request":[{"object":{}}],"x":{"object":{}}}`, "", ""},
		`{"request":{"object":{"a":"\"`:                          {`{"request":{"object":null`, `{"a":"\"`, ""},
	} {
		left, object, old := cutObjects([]byte(body))
		if got := [3]string{string(left), string(object), string(old)}; got != want {
			t.Errorf("%s: %q", body, got)
		}
	}
}

// FuzzReview holds what a handler gets of a review that is read in parts to what is read of it at once.
func FuzzReview(f *testing.F) {
	for _, body := range []string{
		sample, strings.Replace(sample, `"oldObject":null`, `"oldObject":{"a":["\\",{"object":{}}]}`, 1),
		strings.Replace(sample, `"uid"`, `"object":{"first":1},"object":null,"uid"`, 1), strings.Replace(sample, `"object"`, `"\u006fbject"`, 1),
		strings.Replace(sample, `}}`, `},"request":{"object":{}}}`, 1), strings.Replace(sample, `"object":{`, `"object"{`, 1),
		strings.Replace(sample, `{"containers"`, `{{"containers"`, 1), sample[:200],
		sample + "{}", "[" + sample + "]", `["request",{"object":{}}]`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var got review.Request
		asked := false
		post(serveHandler(t, func(_ context.Context, req review.Request) (review.Answer, *review.Fault) {
			got, asked = req, true
			return review.Answer{}, nil
		}), strings.NewReader(body))
		var whole admissionv1.AdmissionReview
		if kjson.UnmarshalCaseSensitivePreserveInts([]byte(body), &whole) != nil {
			if asked && valid(got.Object.Raw) && valid(got.OldObject.Raw) {
				t.Errorf("what is no review is read: %q", body)
			}
			return
		}
		if !asked {
			return // it is held to more than its form
		}
		if diff := cmp.Diff(*whole.Request, got); diff != "" {
			t.Errorf("%q (-whole +got)\n%s", body, diff)
		}
	})
}

func valid(raw []byte) bool { return raw == nil || json.Valid(raw) }
