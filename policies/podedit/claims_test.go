package podedit

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// TestOneClaimForTwo has a promise give two containers one claim: it is not read, and a pod that is as it says is not as promised.
func TestOneClaimForTwo(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]string{"one template": "gpuslice-1324mi", "two templates": "gpuslice-71980mi"} {
		p := &promise.Promise{Version: promise.Version, Strategy: "claim", Request: api.Request{Explicit: true}}
		pod := &corev1.Pod{}
		for container, template := range map[string]string{"large": second, "small": "gpuslice-1324mi"} {
			p.Containers = append(p.Containers, promise.Container{Name: container, Count: 1, Claim: "gpuslice-" + container, Template: template})
			p.Request.Containers = append(p.Request.Containers, api.ContainerRequest{Name: container, GPUs: 1})
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container})
		}
		if _, err := promise.Decode(p.Encode()); err != nil {
			t.Fatalf("%s: a claim for each: %v", name, err)
		}
		if found := Undone(p, Apply(p, pod), nil); len(found) > 0 {
			t.Fatalf("%s: a claim for each: %q", name, found)
		}
		for i := range p.Containers {
			p.Containers[i].Claim = "gpuslice-both"
		}
		if _, err := promise.Decode(p.Encode()); err == nil || !strings.Contains(err.Error(), "another container's claim") {
			t.Errorf("%s: the promise is read: %v", name, err)
		}
		if found := strings.Join(Undone(p, Apply(p, pod), nil), ", "); !strings.Contains(found, `claim "gpuslice-both" of container`) {
			t.Errorf("%s: undone %q", name, found)
		}
	}
}
