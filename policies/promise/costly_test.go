package promise

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// TestCostlyPromise: a promise that a tenant wrote is denied before a quantity in it is parsed, which takes seconds.
func TestCostlyPromise(t *testing.T) {
	t.Parallel()
	text := func(limit string) string {
		return `{"v":1,"namespace":"a","volumes":[{"name":"gpuslice-x","emptyDir":{"sizeLimit":"` + limit + `"}}],"charge":{"slices":1}}`
	}
	if _, err := Decode(text("1Gi")); err != nil && strings.Contains(err.Error(), "is not read") {
		t.Errorf("a promise with a plain quantity: %v", err)
	}
	if _, err := Decode(text("1e-1000")); err == nil || !strings.Contains(err.Error(), "holds a quantity that is not read") {
		t.Errorf("a promise with a costly quantity: %v", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Annotations: map[string]string{api.AnnotationPromise: text("1e-1000")}}}
	if updated, denied := Restore(pod, pod); updated != pod || len(denied) > 0 {
		t.Errorf("an update of a pod with one: %v, %v", updated, denied)
	}
	if ClaimedPromise(pod) != nil {
		t.Error("a pod with one has a slice")
	}
}
