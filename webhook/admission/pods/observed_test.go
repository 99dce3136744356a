package pods

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// ours are the annotations of a pod that was planned and observed.
func ours(planned, observed string) map[string]string {
	promised := &promise.Promise{Version: promise.Version, Namespace: "team-a"}
	out := map[string]string{api.AnnotationPromise: promised.Encode(), api.AnnotationPlanned: planned}
	if observed != "" {
		out[api.AnnotationObserved] = observed
	}
	return out
}

// afterUpdate is what becomes of annotations that somebody writes.
func afterUpdate(t *testing.T, user string, old, updated map[string]string) map[string]string {
	t.Helper()
	raw := func(annotations map[string]string) []byte {
		b, err := json.Marshal(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "team-a", Annotations: annotations}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	response := handle(t, NewMutator(Options{Metrics: metrics.New("test"), Namespace: api.SystemNamespace}, nil), review.Request{
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: "team-a", Operation: admissionv1.Update,
		UserInfo: authenticationv1.UserInfo{Username: user},
		Object:   runtime.RawExtension{Raw: raw(updated)}, OldObject: runtime.RawExtension{Raw: raw(old)},
	})
	if !response.Allowed {
		t.Fatalf("denied: %+v", response.Result)
	}
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(patched(t, string(raw(updated)), response)), &pod); err != nil {
		t.Fatal(err)
	}
	return pod.Annotations
}

func TestObservedAnnotation(t *testing.T) {
	t.Parallel()
	const account = "system:serviceaccount:gpuslice-system:gpuslice-webhook"
	old := ours("planned", "enforced")
	for name, tt := range map[string]struct {
		user                   string
		old, updated, expected map[string]string
	}{
		"our account changes what is observed": {account, old, ours("planned", "degraded"), ours("planned", "degraded")},
		"our account writes it for the first time": {account, ours("planned", ""),
			ours("planned", "enforced"), ours("planned", "enforced")},
		"our account takes it away":                      {account, old, ours("planned", ""), ours("planned", "")},
		"our account changes what was planned":           {account, old, ours("other", "degraded"), ours("planned", "degraded")},
		"our account takes everything away":              {account, old, nil, ours("planned", "")},
		"a tenant changes what is observed":              {"jane", old, ours("planned", "better"), old},
		"a tenant takes it away":                         {"jane", old, ours("planned", ""), old},
		"a tenant writes it first":                       {"jane", ours("planned", ""), ours("planned", "better"), ours("planned", "")},
		"an account of our name in another namespace":    {"system:serviceaccount:team-a:gpuslice-webhook", old, ours("planned", "better"), old},
		"another account of ours":                        {"system:serviceaccount:gpuslice-system:default", old, ours("planned", "better"), old},
		"a user who is called as if it were our account": {"gpuslice-webhook", old, ours("planned", "better"), old},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.expected, afterUpdate(t, tt.user, tt.old, tt.updated)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
