package policies_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// intoEvery has a webhook write into every container.
func intoEvery(pod *corev1.Pod, write func(*corev1.Container)) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			write(&list[i])
		}
	}
	return pod
}

// TestNeighbors has other webhooks write into every container of every slice, after gpuslice, which is asked again.
func TestNeighbors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		write func(*corev1.Container)
		says  []string // "": it is fine
	}{
		"proxy": {write: func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "HTTP_PROXY", Value: "http://proxy:3128"})
		}},
		"token": {write: func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "AWS_ROLE_ARN", Value: "arn:aws:iam::1:role/a"})
			c.VolumeMounts = append(c.VolumeMounts,
				corev1.VolumeMount{Name: "aws-iam-token", MountPath: "/var/run/secrets/eks.amazonaws.com/serviceaccount", ReadOnly: true})
		}},
		"disk": {write: func(c *corev1.Container) {
			for _, list := range []*corev1.ResourceList{&c.Resources.Limits, &c.Resources.Requests} {
				if *list == nil {
					*list = corev1.ResourceList{}
				}
				if _, ok := (*list)[corev1.ResourceEphemeralStorage]; !ok {
					(*list)[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
				}
			}
		}},
		"library": {write: func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "/opt/agent.so"})
		},
			says: []string{"spec.initContainers[gpuslice-check].env[LD_PRELOAD]", "those who run the cluster exclude containers gpuslice-* there"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guarded := 0
			for _, c := range created(t) {
				if c.d.Outcome != policies.Mutated || c.d.Promise.Guard == nil || c.in.Policy.EnforcementMode != api.EnforceFull {
					continue
				}
				guarded++
				in := c.in
				in.Pod = intoEvery(c.d.Rewrite(c.in.Pod), tt.write)
				in.Pod.Spec.Volumes = append(in.Pod.Spec.Volumes,
					corev1.Volume{Name: "aws-iam-token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}})
				d := policies.Verify(in, c.d.Promise)
				if tt.says != nil {
					for _, says := range tt.says {
						if d.IfEnforced != policies.Denied || !strings.Contains(d.Message(), says) {
							t.Errorf("%s: %s: %s, want %s", c.s.Name, d.IfEnforced, d.Message(), says)
						}
					}
					continue
				}
				if d.Outcome != policies.Unchanged {
					t.Errorf("%s: %s", c.s.Name, d.Message())
				}
				again := policies.Decide(in)
				if after := again.Rewrite(in.Pod); again.Outcome != policies.Mutated ||
					!equality.Semantic.DeepEqual(after.Spec.InitContainers, in.Pod.Spec.InitContainers) {
					t.Errorf("%s: asked again: %s %s", c.s.Name, again.Outcome, again.Message())
				}
			}
			if guarded < 50 {
				t.Errorf("%d scenarios have a guard", guarded)
			}
		})
	}
}
