package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/test/cluster"
)

// TestRay follows the page with KubeRay's operator. Nothing runs in the pods, so the test changes replicas in the place of Ray's
// autoscaler.
func TestRay(t *testing.T) {
	l := start(t, "deploy/recipes/ray.md", cluster.Controller{Name: "kuberay", Module: "github.com/ray-project/kuberay/ray-operator"})
	const team, slice = "ray", "ray-worker: 5Gi of " + shared
	l.govern(l.Block("names: [" + team + "]"))
	l.define("config/crd/bases")
	page := l.Block("kind: RayCluster")
	l.apply(page)
	l.Must(l.Server.StartController(l.controller, nil,
		"--metrics-addr=0", "--health-probe-bind-address=0", "--enable-leader-election=false"))

	var head corev1.Pod
	l.await("the head, and no worker", func() string {
		pods := l.pods(team)
		if len(pods) != 1 || pods[0].Spec.NodeName == "" {
			return fmt.Sprintf("%d pods", len(pods))
		}
		head = pods[0]
		return ""
	})
	if names := containers(head); !slices.Equal(names, []string{"ray-head", "autoscaler"}) {
		t.Errorf("the head has containers %q", names)
	}

	replicas := strings.NewReplacer("minReplicas: 0", "minReplicas: 0\n    replicas: 9", "maxReplicas: 8", "maxReplicas: 9").Replace(page)
	l.apply(replicas)
	l.awaitBound(team, slice, 8)
	for _, p := range l.pods(team) {
		if p.Name == head.Name {
			continue
		}
		if c := p.Spec.Containers[slices.Index(containers(p), "ray-worker")]; !strings.Contains(c.Args[0], " --num-gpus=1 ") {
			t.Errorf("worker %s starts with %q", p.Name, c.Args)
		}
	}
	l.await("an Event about the ninth worker", func() string {
		failed := metav1.ListOptions{FieldSelector: "reason=FailedToCreateWorkerPod"}
		list, err := l.Server.Client.CoreV1().Events(team).List(t.Context(), failed)
		l.Must(err)
		if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return strings.Contains(e.Message, "exceeded quota") }) {
			return fmt.Sprintf("%d Events", len(list.Items))
		}
		return ""
	})

	gone := l.pods(team)
	gone = slices.DeleteFunc(gone, func(p corev1.Pod) bool { return p.Name == head.Name })
	l.Must(l.Server.Client.CoreV1().Pods(team).Delete(t.Context(), gone[0].Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	l.awaitBound(team, slice, 8)
}

func containers(p corev1.Pod) (names []string) {
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	return names
}
