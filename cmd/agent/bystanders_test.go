package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/cgroup"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
)

func TestBystanders(t *testing.T) {
	known := map[string]node.Pod{"bare": {UID: "bare", Name: "bare"}}
	b := &bystanders{known: func(uid string) (node.Pod, bool) { p, found := known[uid]; return p, found }, reported: map[string]bool{}}
	sample := func(uid string, gibs int64) node.Sample {
		p := node.Process{Process: guard.Process{PID: 57, Command: "python", UsedBytes: gibs << 30}, Member: cgroup.Member{PodUID: uid}}
		return node.Sample{Devices: []node.Device{{Device: guard.Device{ID: "gpu0"}, Processes: []node.Process{p, p}}}}
	}
	const says = "python (pid 57) uses 30Gi on gpu0, and its pod was given no GPU: nothing limits it"
	for _, c := range []struct {
		name   string
		sample node.Sample
		want   []string
	}{
		{"one with a device", sample("other", 30), nil},
		{"one of no pod", sample("", 30), nil},
		{"one that holds nothing yet", sample("bare", 0), nil},
		{"one without", sample("bare", 30), []string{says}},
		{"the same again", sample("bare", 30), nil},
	} {
		var got []string
		b.find(c.sample, func(p node.Pod, message string) {
			if got = append(got, message); p.Name != "bare" {
				t.Errorf("%s: reported of %q", c.name, p.Name)
			}
		})
		if !cmp.Equal(c.want, got) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	known = map[string]node.Pod{"next": {UID: "next"}}
	b.find(sample("next", 30), func(node.Pod, string) {})
	if want := map[string]bool{"next": true}; !cmp.Equal(want, b.reported) {
		t.Errorf("kept %v", b.reported)
	}
}

func TestHasNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.PodSpec)
		want   bool
	}{
		"processors and memory": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), "hugepages-2Mi": resource.MustParse("2Mi")}
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
			s.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}
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
