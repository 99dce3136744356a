package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// TestNativeQuota: the quota is on nvidia.com/gpu, and the pods come to carry another name.
func TestNativeQuota(t *testing.T) {
	t.Parallel()
	t.Run("a tenant's old quota counts renamed pods", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team-gpus"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests." + api.ResourceGPU: resource.MustParse("2")}}}
		if _, err := s.node.Client.CoreV1().ResourceQuotas(s.namespace).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		if err := s.node.AwaitQuota(ctx, s.namespace, quota.Name); err != nil {
			t.Fatal(err)
		}
		var admitted atomic.Int64
		var running sync.WaitGroup
		for i := range 10 {
			running.Go(func() {
				_, err := s.node.Client.CoreV1().Pods(s.namespace).Create(t.Context(),
					slice("4Gi", fmt.Sprintf("train-%d", i), sliced("trainer", "hold 1GiB")), metav1.CreateOptions{})
				switch {
				case err == nil:
					admitted.Add(1)
				case !strings.Contains(err.Error(), "exceeded quota: team-gpus (ResourceQuota), requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2"):
					t.Error(err)
				}
			})
		}
		running.Wait()
		if n := admitted.Load(); n != 2 {
			t.Errorf("%d pods were admitted, want 2", n)
		}
		pods, err := s.node.Client.CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range pods.Items {
			if s.awaitRunning(pods.Items[i].Name).Annotations[api.AnnotationPromise] == "" {
				t.Errorf("%s was not renamed", pods.Items[i].Name)
			}
		}
	})
}

func TestDeploymentDenied(t *testing.T) {
	t.Parallel()
	t.Run("shows why its pods are denied", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		p := slice("900Gi", "web", sliced("server"))
		p.Name, p.Labels["app"] = "", "web"
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}}}
		if _, err := s.node.Client.AppsV1().Deployments(s.namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		await(s, "events", "involvedObject.kind=Deployment,involvedObject.name=web,reason=GPUSliceDenied",
			"denial on the Deployment", &corev1.Event{},
			func(*corev1.Event) bool { return true })
		out, err := s.node.Kubectl(t.Context(), "describe", "deployment", "web", "--namespace="+s.namespace)
		text := out
		if err != nil || !strings.Contains(text, "GPUSliceDenied") ||
			!strings.Contains(text, "gpuslice denied a pod: ") || !strings.Contains(text, "900Gi") {
			t.Errorf("kubectl describe (%v):\n%s", err, text)
		}
		t.Log(text[strings.Index(text, "Events:"):])
	})
}
