package installed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/config"
)

func TestGuard(t *testing.T) {
	t.Run("is read as the webhook reads it", func(t *testing.T) {
		for _, c := range []struct {
			name string
			args []string
			env  map[string]string
			want *config.GuardSettings
		}{
			{"no guard", []string{"--listen=:9443"}, nil, nil},
			{"an argument", []string{"--guard-image=a:1"},
				nil, &config.GuardSettings{Image: "a:1", PullPolicy: "IfNotPresent", CPU: "20m", Memory: "64Mi"}},
			{"two words, and all settings", []string{"--guard-image", "a:1", "--guard-cpu=1", "--guard-memory=1Gi", "--guard-pull-policy=Always",
				"--guard-pull-secret=s", "--guard-image-mirrors=b,c/d"}, nil,
				&config.GuardSettings{Image: "a:1", Mirrors: []string{"b", "c/d"}, PullPolicy: "Always", PullSecret: "s", CPU: "1", Memory: "1Gi"}},
			{"an argument beats a variable", []string{"--guard-image=a:1"},
				map[string]string{"GPUSLICE_GUARD_IMAGE": "b:1", "GPUSLICE_GUARD_CPU": "2"},
				&config.GuardSettings{Image: "a:1", PullPolicy: "IfNotPresent", CPU: "2", Memory: "64Mi"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				container := corev1.Container{Args: c.args}
				for name, value := range c.env {
					container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
				}
				d := &appsv1.Deployment{}
				d.Spec.Template.Spec.Containers = []corev1.Container{container}
				if diff := cmp.Diff(c.want, Guard(d)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
		if Guard(nil) != nil {
			t.Error("no Deployment, and yet a guard")
		}
	})
}
