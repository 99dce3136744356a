package podedit

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/shim"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// TestShimEdit goes through the values of PYTHONPATH: what Python makes of the author's part must not change.
func TestShimEdit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ authored, want string }{
		{"", "/gpuslice/shim"},
		{"/app", "/gpuslice/shim:/app"},
		{"/app:", "/gpuslice/shim:/app:"}, // the empty entry is the working folder
		{":/app", "/gpuslice/shim::/app"},
		{"/gpuslice/shims", "/gpuslice/shim:/gpuslice/shims"},
		{"$(HOME)/lib", "/gpuslice/shim:$(HOME)/lib"},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Env: []corev1.EnvVar{
			{Name: "PYTHONPATH", Value: "/shadowed"}, {Name: "PYTHONPATH", Value: tt.authored}}}}}}
		given := &promise.Promise{Version: promise.Version, Containers: []promise.Container{{Name: "c", Shim: shim.ByVariable}}}
		list := editList{shimEdit{}}
		out := list.apply(pod, new(promise.Promise), given)
		if got := out.Spec.Containers[0].Env; got[1].Value != tt.want || got[0].Value != "/shadowed" {
			t.Errorf("%q becomes %q, want %q", tt.authored, got, tt.want)
		}
		wantPod(t, pod, list.reverted(out, given))
		wantPod(t, pod, list.reverted(out, new(promise.Promise))) // a copy without its promise
	}
	t.Run("who removes it is seen", func(t *testing.T) {
		for way, author := range map[string]corev1.Container{
			shim.ByVariable: {Name: "c", Env: []corev1.EnvVar{{Name: "PYTHONPATH", Value: "/app"}}},
			shim.ByCommand:  {Name: "c", Command: []string{"python"}},
			shim.ByFile:     {Name: "c", Args: []string{"train.py"}},
		} {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{author}}}
			given := &promise.Promise{Version: promise.Version, Containers: []promise.Container{{Name: "c", Shim: way}}}
			if paths := (editList{shimEdit{}}).undone(pod, given); len(paths) != 1 {
				t.Errorf("%s: undone %v", way, paths)
			}
		}
	})
	t.Run("a copy without its promise starts as its author wrote it", func(t *testing.T) {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c",
			Command: []string{"/gpuslice/shim/gpuslice-exec", "python"}}},
			Volumes: []corev1.Volume{{Name: "gpuslice-shim"}}}}
		authored, _, _ := Revert(pod, nil)
		if got := authored.Spec.Containers[0].Command; !slices.Equal(got, []string{"python"}) {
			t.Errorf("the command is %q", got)
		}
	})
}
