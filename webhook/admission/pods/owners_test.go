package pods

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// listener keeps what is reported.
type listener []string

func (l *listener) Denied(pod metav1.Object, text string) {
	owner := metav1.GetControllerOf(pod)
	*l = append(*l, pod.GetNamespace()+"/"+owner.Name+": "+text)
}

const ownedPod = `{"metadata":{"generateName":"web-","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"1","controller":true}]},"spec":{}}`

func TestReportDenials(t *testing.T) {
	t.Parallel()
	denied := func(reason metav1.StatusReason) review.Answer { return review.Denied(reason, "no room") }
	for name, c := range map[string]struct {
		answer review.Answer
		fault  *review.Fault
		change func(*review.Request)
		want   listener
	}{
		"a denial":             {denied(metav1.StatusReasonForbidden), nil, nil, listener{"team-a/web: no room"}},
		"what cannot be read":  {denied(metav1.StatusReasonInvalid), nil, nil, listener{"team-a/web: no room"}},
		"a pod that is let in": {review.Answer{}, nil, nil, nil},
		"ask again":            {denied(metav1.StatusReasonTooManyRequests), nil, nil, nil},
		"no answer":            {review.Answer{}, review.Faultf(http.StatusServiceUnavailable, "away"), nil, nil},
		"a dry run":            {denied(metav1.StatusReasonForbidden), nil, func(r *review.Request) { r.DryRun = new(true) }, nil},
		"an update":            {denied(metav1.StatusReasonForbidden), nil, func(r *review.Request) { r.Operation = admissionv1.Update }, nil},
		"a subresource":        {denied(metav1.StatusReasonForbidden), nil, func(r *review.Request) { r.SubResource = "eviction" }, nil},
		"a pod of great length": {denied(metav1.StatusReasonForbidden), nil,
			func(r *review.Request) { r.Object.Raw = []byte(ownedPod + strings.Repeat(" ", maxReported)) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := review.Request{Namespace: "team-a", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(ownedPod)}}
			if c.change != nil {
				c.change(&req)
			}
			var got listener
			handler := ReportDenials(
				review.HandlerFunc(func(context.Context, review.Request) (review.Answer, *review.Fault) { return c.answer, c.fault }), &got)
			answer, fault := handler.Handle(t.Context(), req)
			if diff := cmp.Diff(c.answer, answer); diff != "" || fault != c.fault {
				t.Errorf("the answer changed: %v\n%s", fault, diff)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
