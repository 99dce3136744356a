package webhook

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// listener notes of whom it is told.
type listener []string

func (l *listener) Denied(pod metav1.Object, text string) {
	owner := metav1.GetControllerOf(pod)
	*l = append(*l, pod.GetNamespace()+"/"+owner.Name+": "+text)
}

const ownedPod = `{"metadata":{"generateName":"web-","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"1","controller":true}]},"spec":{}}`

func TestOwnersAreToldOfRefusedPodsAlone(t *testing.T) {
	t.Parallel()
	coded := func(code int32) admission.Response {
		r := admission.Denied("no room")
		r.Result.Code = code
		return r
	}
	for name, c := range map[string]struct {
		answer admission.Response
		change func(*admission.Request)
		want   listener
	}{
		"a refusal":             {coded(http.StatusForbidden), nil, listener{"team-a/web: no room"}},
		"what cannot be read":   {coded(http.StatusUnprocessableEntity), nil, listener{"team-a/web: no room"}},
		"a pod that is let in":  {admission.Allowed(""), nil, nil},
		"ask again":             {coded(http.StatusTooManyRequests), nil, nil},
		"no answer":             {coded(http.StatusServiceUnavailable), nil, nil},
		"a dry run":             {coded(http.StatusForbidden), func(r *admission.Request) { r.DryRun = new(true) }, nil},
		"an update":             {coded(http.StatusForbidden), func(r *admission.Request) { r.Operation = admissionv1.Update }, nil},
		"a subresource":         {coded(http.StatusForbidden), func(r *admission.Request) { r.SubResource = "eviction" }, nil},
		"a pod of great length": {coded(http.StatusForbidden), func(r *admission.Request) { r.Object.Raw = []byte(ownedPod + strings.Repeat(" ", maxTold)) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "team-a", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(ownedPod)}}}
			if c.change != nil {
				c.change(&req)
			}
			var got listener
			handler := TellOwners(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return c.answer }), &got)
			if diff := cmp.Diff(c.answer, handler.Handle(t.Context(), req)); diff != "" {
				t.Errorf("the answer changed\n%s", diff)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
