package nodepods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/guard/limits"
)

func TestHasNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.PodSpec)
		want   bool
	}{
		"processors and memory": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"),
				"hugepages-2Mi": resource.MustParse("2Mi")}
		}, true},
		"none of a device": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")}
		}, true},
		"a device": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/mig-1g.10gb": resource.MustParse("1")}
		}, false},
		"an agent, and no device": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{limits.GuardedResource: resource.MustParse("1")}
		}, true},
		"a device of an init container": {func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{
				{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}},
			}
		}, false},
		"a claim":              {func(s *corev1.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }, false},
		"the node's processes": {func(s *corev1.PodSpec) { s.HostPID = true }, false},
		"the node's files": {func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/dev"}}}}
		}, false},
		"privileges": {func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}, false},
		"another volume": {func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}, true},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}}
		c.change(&pod.Spec)
		if got := hasNothing(pod); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if _, marked := slim(pod).Annotations[nothingGiven]; marked != c.want {
			t.Errorf("%s: slim marks it: %v", name, marked)
		}
	}
}
