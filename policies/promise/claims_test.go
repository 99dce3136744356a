package promise

import (
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
