package podedit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// TestRestoreUnread: a Promise that is not read, here for a quantity that takes seconds, restores nothing.
func TestRestoreUnread(t *testing.T) {
	t.Parallel()
	text := `{"v":1,"namespace":"a","charge":{"slices":1},"volumes":[{"name":"gpuslice-x","emptyDir":{"sizeLimit":"1e-1000"}}]}`
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Annotations: map[string]string{api.AnnotationPromise: text}}}
	if updated, denied := Restore(pod, pod); updated != pod || len(denied) > 0 {
		t.Errorf("an update of a pod with one: %v, %v", updated, denied)
	}
}

// TestRestoreOtherSpelling: a Promise of a request that this build reads nowhere still holds its pod to it.
func TestRestoreOtherSpelling(t *testing.T) {
	t.Parallel()
	p := &promise.Promise{
		Version: promise.Version, Namespace: "a", Strategy: "mps",
		Containers: []promise.Container{{Name: "main", Resource: api.ResourceGPU, Count: 1}},
		Request: api.Request{Explicit: true,
			Containers: []api.ContainerRequest{{Name: "main", GPUs: 1, Foreign: map[string]string{"example.com/later": "1e-10000000"}}}},
	}
	old := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Annotations: map[string]string{api.AnnotationPromise: p.Encode()},
			Labels: map[string]string{api.LabelMemory: "4Gi"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
	}
	updated := old.DeepCopy()
	updated.Annotations[api.AnnotationPromise], updated.Labels[api.LabelMemory] = "{}", "80Gi"
	after, denied := Restore(old, updated)
	if after.Annotations[api.AnnotationPromise] != p.Encode() || len(denied) == 0 {
		t.Errorf("promise %s; denied %v", after.Annotations[api.AnnotationPromise], denied)
	}
}

// TestForeignResources: resources that a Promise says were requested are put back if another system reads them, and only then.
func TestForeignResources(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resource, quantity string
		back               bool
	}{
		"another system's": {"nvidia.com/gpumem", "4096", true},
		"of nobody":        {"example.com/dongle", "1", false},
		"of the node":      {"cpu", "1", false},
		"a costly one":     {"nvidia.com/gpumem", "1e-10000000", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &promise.Promise{
				Version: promise.Version, Namespace: "a", Strategy: "mps",
				Containers: []promise.Container{{Name: "main", Resource: api.ResourceGPU, Count: 1}},
				Request: api.Request{Explicit: true,
					Containers: []api.ContainerRequest{{Name: "main", GPUs: 1, Foreign: map[string]string{c.resource: c.quantity}}}},
			}
			limits := corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "a", Annotations: map[string]string{api.AnnotationPromise: p.Encode()}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: limits}}}},
			}
			authored, recorded, warnings := Revert(pod, nil)
			_, back := authored.Spec.Containers[0].Resources.Limits[corev1.ResourceName(c.resource)]
			if back != c.back || (recorded != nil) != c.back || (len(warnings) == 0) != c.back {
				t.Errorf("put back: %t, want %t; recorded %v; warnings %q", back, c.back, recorded, warnings)
			}
		})
	}
}
