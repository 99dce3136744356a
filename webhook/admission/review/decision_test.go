package review

import (
	"math"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

func TestOfDecision(t *testing.T) {
	t.Parallel()
	t.Run("a denial carries its reasons for people and tools", func(t *testing.T) {
		t.Parallel()
		got, err := OfDecision(policies.Decision{
			Outcome: policies.Denied, IfEnforced: policies.Denied, Policy: "gpuslice-system/a", Mode: api.EnforceFull,
			Violations: []api.Violation{
				{Rule: "fit", Field: "metadata.labels[gpuslice.dev/memory]", Reason: "no pool holds it", Detail: "10Gi does not fit"},
				{Rule: "limit", Reason: "above the limit", Detail: "8Gi is the most"},
			},
		}, nil).Response("u")
		if err != nil {
			t.Fatal(err)
		}
		want := &metav1.Status{
			Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: "no pool holds it: 10Gi does not fit; above the limit: 8Gi is the most",
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeForbidden, Field: "metadata.labels[gpuslice.dev/memory]", Message: "no pool holds it: 10Gi does not fit"},
				{Type: metav1.CauseTypeForbidden, Message: "above the limit: 8Gi is the most"},
			}},
		}
		if diff := cmp.Diff(want, got.Result); diff != "" || got.Allowed || got.UID != "u" {
			t.Errorf("allowed %v (-want +got)\n%s", got.Allowed, diff)
		}
	})
}

func TestAnswerResponse(t *testing.T) {
	t.Parallel()
	patch := admissionv1.PatchTypeJSONPatch
	for name, tt := range map[string]struct {
		answer Answer
		want   *admissionv1.AdmissionResponse // nil: it cannot be encoded
	}{
		"the zero answer admits": {Answer{}, &admissionv1.AdmissionResponse{Allowed: true, Result: &metav1.Status{Code: 200}}},
		"a patch names its type": {Answer{Patch: []jsonpatch.Operation{jsonpatch.NewOperation("remove", "/x", nil)}},
			&admissionv1.AdmissionResponse{Allowed: true, Result: &metav1.Status{Code: 200},
				Patch: []byte(`[{"op":"remove","path":"/x"}]`), PatchType: &patch}},
		"a patch that is no JSON": {Answer{Patch: []jsonpatch.Operation{jsonpatch.NewOperation("add", "/x", math.NaN())}}, nil},
		"what is invalid is 422": {Answer{Denial: &Denial{Reason: metav1.StatusReasonInvalid, Message: "m"}},
			&admissionv1.AdmissionResponse{Result: &metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Message: "m"}}},
		"a wait is 429 with a time": {Answer{Denial: &Denial{Reason: metav1.StatusReasonTooManyRequests, RetryAfterSeconds: 1}},
			&admissionv1.AdmissionResponse{
				Result: &metav1.Status{Code: 429, Reason: metav1.StatusReasonTooManyRequests, Details: &metav1.StatusDetails{RetryAfterSeconds: 1}},
			}},
		"a denial carries no patch": {Answer{Denial: &Denial{Reason: metav1.StatusReasonForbidden},
			Patch: []jsonpatch.Operation{jsonpatch.NewOperation("remove", "/x", nil)}},
			&admissionv1.AdmissionResponse{Result: &metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.answer.Response("")
			if (err != nil) != (tt.want == nil) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
