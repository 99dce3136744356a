package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

func TestPromisedBy(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*corev1.Pod)
		enforced bool
		failure  string
	}{
		"a promise of the agent's":    {func(*corev1.Pod) {}, true, ""},
		"one of a sidecar's":          {func(p *corev1.Pod) { *p = *promisedPod("train", false) }, false, ""},
		"none":                        {func(p *corev1.Pod) { p.Annotations = nil }, false, ""},
		"of a pod that has ended":     {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false, ""},
		"of another namespace":        {func(p *corev1.Pod) { p.Namespace = "team-b" }, false, `of namespace "team-a"`},
		"one that cannot be read":     {func(p *corev1.Pod) { p.Annotations[api.AnnotationPromise] = "{" }, false, "read promise"},
		"one whose limits are broken": {func(p *corev1.Pod) { replace(p, `\"slice\":8589934592`, `\"slice\":-1`) }, false, "containers[0].slice"},
		"one of a newer contract":     {func(p *corev1.Pod) { replace(p, `"value":"1"`, `"value":"2"`) }, false, "unknown version"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := promisedPod("train", true)
			c.change(pod)
			slimmed, err := slim(pod)
			if err != nil {
				t.Fatal(err)
			}
			got, err := promisedBy(slimmed.(*corev1.Pod))
			if (got != nil) != c.enforced || (err != nil) != (c.failure != "") || err != nil && !strings.Contains(err.Error(), c.failure) {
				t.Errorf("got %+v, %v", got, err)
			}
			if want := map[string]string{idOf("train"): "trainer"}; got != nil && !cmp.Equal(want, got.Containers) {
				t.Errorf("containers: %v", got.Containers)
			}
		})
	}
}

func replace(p *corev1.Pod, before, after string) {
	p.Annotations[api.AnnotationPromise] = strings.Replace(p.Annotations[api.AnnotationPromise], before, after, 1)
}

func TestSlim(t *testing.T) {
	pod := promisedPod("train", true)
	pod.Annotations["other"] = strings.Repeat("x", 1<<16)
	pod.Spec.Containers = []corev1.Container{{Name: "trainer", Image: "image"}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", ContainerID: "cri-o://1", Image: "image"}}
	pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debugger", ContainerID: "cri-o://2"}, {Name: "waits"}}
	object, err := slim(pod)
	if err != nil {
		t.Fatal(err)
	}
	got := object.(*corev1.Pod)
	if len(got.Annotations) != 1 || got.Spec.NodeName != "" || len(got.Spec.Containers) > 0 {
		t.Errorf("kept %+v", got)
	}
	if want := map[string]string{"1": "init", "2": "debugger", idOf("train"): "trainer"}; !cmp.Equal(want, containersOf(got)) {
		t.Errorf("containers: %v", containersOf(got))
	}
}
