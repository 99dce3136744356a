package promise

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// TestCostlyPromise: a promise that a tenant wrote is denied before a quantity in it is parsed, which takes seconds.
func TestCostlyPromise(t *testing.T) {
	t.Parallel()
	text := func(name, limit string) string {
		return `{"v":1,"namespace":"a","containers":[{"name":"` + name +
			`"}],"charge":{"slices":1},"volumes":[{"name":"gpuslice-x","emptyDir":{"sizeLimit":"` + limit + `"}}]}`
	}
	const unread = "holds a quantity that is not read"
	for _, name := range []string{"trainer", "1e1000"} { // a container may be called so
		if _, err := Decode(text(name, "1Gi")); err != nil && strings.Contains(err.Error(), unread) {
			t.Errorf("a promise with a plain quantity, for container %s: %v", name, err)
		}
	}
	costly := text("trainer", "1e-1000")
	if _, err := Decode(costly); err == nil || !strings.Contains(err.Error(), unread) {
		t.Errorf("a promise with a costly quantity: %v", err)
	}
	for name, other := range map[string]string{
		"under a name in other case": strings.Replace(costly, "volumes", "Volumes", 1),
		"beside another list":        strings.Replace(costly, `"volumes"`, `"volumes":[],"volumes"`, 1),
	} {
		if p, err := Decode(other); err == nil || p != nil {
			t.Errorf("a promise with a costly quantity %s: %+v", name, p)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Annotations: map[string]string{api.AnnotationPromise: costly}}}
	if _, err := DecodeNewer(costly); err == nil {
		t.Error("an update of a pod with one reads it")
	}
	if ClaimedPromise(pod) != nil {
		t.Error("a pod with one has a slice")
	}
}

// TestQuantitiesOfPromises: only what is read last holds quantities.
func TestQuantitiesOfPromises(t *testing.T) {
	t.Parallel()
	given := reflect.TypeFor[Promise]()
	for i := range given.NumField() {
		if f := given.Field(i); f.Name != "Volumes" && holdsQuantity(f.Type, map[reflect.Type]bool{}) {
			t.Errorf("field %s has quantities, which are parsed unbounded", f.Name)
		}
	}
	if !holdsQuantity(reflect.TypeFor[[]corev1.Volume](), map[reflect.Type]bool{}) {
		t.Error("volumes have no quantities")
	}
}

// holdsQuantity reports whether a quantity may stand somewhere in values of a type.
func holdsQuantity(in reflect.Type, seen map[reflect.Type]bool) bool {
	if in == reflect.TypeFor[resource.Quantity]() {
		return true
	}
	if seen[in] {
		return false
	}
	seen[in] = true
	switch in.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsQuantity(in.Elem(), seen)
	case reflect.Struct:
		for i := range in.NumField() {
			if holdsQuantity(in.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
