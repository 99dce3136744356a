package promise

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// TestClaimsOfClass holds that the claim of an init container counts beside those of the others: the pod keeps it.
func TestClaimsOfClass(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "prepare"}}, Containers: []corev1.Container{{Name: "main"}}}}
	for claim, want := range map[string]api.MiB{"gpuslice-": 8192, "": 4096} {
		p := &Promise{Strategy: "time-slicing"}
		for _, name := range []string{"prepare", "main"} {
			c := Container{Name: name, Count: 1, Slice: 4096, Class: "small"}
			if claim != "" {
				c.Claim, c.Template = claim+name, "gpuslice-4396mi"
			}
			p.Containers = append(p.Containers, c)
		}
		if got := p.Holding(pod).Classes["small"].Memory; got != want {
			t.Errorf("claims %q...: the class holds %s, want %s", claim, got, want)
		}
	}
}

// TestOneClaimForTwo has a promise give two containers one claim: it is not read, and a pod that is as it says is not as promised.
func TestOneClaimForTwo(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]string{"one template": "gpuslice-1324mi", "two templates": "gpuslice-71980mi"} {
		p := &Promise{Version: Version, Strategy: "claim", Request: api.Request{Explicit: true}}
		pod := &corev1.Pod{}
		for container, template := range map[string]string{"large": second, "small": "gpuslice-1324mi"} {
			p.Containers = append(p.Containers, Container{Name: container, Count: 1, Claim: "gpuslice-" + container, Template: template})
			p.Request.Containers = append(p.Request.Containers, api.ContainerRequest{Name: container, GPUs: 1})
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container})
		}
		if _, err := Decode(p.Encode()); err != nil {
			t.Fatalf("%s: a claim for each: %v", name, err)
		}
		if found := p.Undone(p.Apply(pod), nil); len(found) > 0 {
			t.Fatalf("%s: a claim for each: %q", name, found)
		}
		for i := range p.Containers {
			p.Containers[i].Claim = "gpuslice-both"
		}
		if _, err := Decode(p.Encode()); err == nil || !strings.Contains(err.Error(), "another container's claim") {
			t.Errorf("%s: the promise is read: %v", name, err)
		}
		if found := strings.Join(p.Undone(p.Apply(pod), nil), ", "); !strings.Contains(found, `claim "gpuslice-both" of container`) {
			t.Errorf("%s: undone %q", name, found)
		}
	}
}
