package observe

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// TestPromises: a promise is decoded once, and not trusted once its key is not, nor for another namespace.
func TestPromises(t *testing.T) {
	t.Parallel()
	older, newer := bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32)
	s := started(t, "time-slicing")
	promise.NewKeys(older).Sign(s.promise)
	s.pod.Annotations[api.AnnotationPromise] = s.promise.Encode()
	copied := s.pod.DeepCopy()
	copied.Namespace = "team-b"
	var p promises
	decoded := 0
	of := func(pod *corev1.Pod, keys promise.Keys) *promise.Promise {
		return p.of(pod, keys, func(pod *corev1.Pod) *promise.Promise { decoded++; return keys.PromiseOf(pod) })
	}
	for k, step := range []struct {
		pod     *corev1.Pod
		keys    promise.Keys
		trusted bool
		decoded int
	}{
		{s.pod, promise.NewKeys(older), true, 1},
		{s.pod, promise.NewKeys(older), true, 1},
		{copied, promise.NewKeys(older), false, 2},
		{s.pod, promise.NewKeys(newer, older), true, 3},
		{s.pod, promise.NewKeys(newer), false, 4},
		{s.pod, promise.Keys{}, false, 5},
		{s.pod, promise.NewKeys(older), true, 6},
	} {
		if got := of(step.pod, step.keys); (got != nil) != step.trusted || decoded != step.decoded {
			t.Errorf("step %d: trusted: %t, decoded %d times", k, got != nil, decoded)
		}
	}
	for k := range 200 {
		s.promise.Policy = fmt.Sprint(k, strings.Repeat("long", 5000))
		promise.NewKeys(older).Sign(s.promise)
		s.pod.Annotations[api.AnnotationPromise] = s.promise.Encode()
		if got := of(s.pod, promise.NewKeys(older)); got == nil || got.Policy != s.promise.Policy {
			t.Fatalf("promise %d is another one: %+v", k, got)
		}
		before := decoded
		if of(s.pod, promise.NewKeys(older)); decoded != before {
			t.Fatalf("promise %d is decoded twice", k)
		}
	}
	size := 0
	for text := range p.known {
		size += len(text.namespace) + len(text.text)
	}
	if size > 2<<20 || size < 1<<20 || size != p.size {
		t.Errorf("%d bytes are kept, and counted as %d", size, p.size)
	}
}
