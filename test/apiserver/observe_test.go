package apiserver

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
)

// TestObserved goes all the way: the pod is planned by the webhook, and
// the controller's patch of it is reviewed by the same webhook.
func TestObserved(t *testing.T) {
	t.Run("passes the webhook, and nobody else writes it", func(t *testing.T) {
		i := need(t)
		const namespace = "observed"
		setUpReapply(t, i, namespace)
		u := podOf(t, "train", namespace, manifests["label"])
		if _, err := i.Apply.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pods := i.Server.Client.CoreV1().Pods(namespace)
		bind := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "train"}, Target: corev1.ObjectReference{Kind: "Node", Name: "l4-1"}}
		if err := pods.Bind(t.Context(), bind, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pod, err := pods.Get(t.Context(), "train", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning,
			InitContainerStatuses: []corev1.ContainerStatus{
				{Name: limits.CheckContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
				{Name: limits.GuardContainer, State: runs, Started: new(true)}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "a", State: runs, Started: new(true)}}}
		if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		var written string
		err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			pod, err := pods.Get(ctx, "train", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			written = pod.Annotations[api.AnnotationObserved]
			return written != "", nil
		})
		if err != nil {
			t.Fatalf("nothing is observed: %v", err)
		}
		if o, err := observe.DecodeObservation(written); err != nil || o.State != observe.Enforced || o.Tier != api.TierGuard {
			t.Errorf("observed %s: %v", written, err)
		}
		forged := []byte(`{"metadata":{"annotations":{"` + api.AnnotationObserved + `":"forged"}}}`)
		after, err := pods.Patch(t.Context(), "train", types.MergePatchType, forged, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := after.Annotations[api.AnnotationObserved]; got != written {
			t.Errorf("somebody else's annotation stays: %s", got)
		}
	})
}
