package e2e

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// TestColdStart is the cold start of a cluster: nothing of ours runs, tenants do, and our
// own pods have to be created while nobody judges pods. It is not parallel: the others' creates would be denied meanwhile.
func TestColdStart(t *testing.T) {
	t.Run("when all of gpuslice is deleted at once it comes back alone", func(t *testing.T) {
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		s.create(slice("4Gi", "before", sliced("trainer", "hold 1GiB")))
		before := s.awaitRunning("before")

		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		own := s.node.Client.CoreV1().Pods(api.SystemNamespace)
		begin := time.Now()
		if err := own.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := s.node.Client.CoreV1().Pods(s.namespace).Create(ctx, once(plain("plain", tenant("web"))), metav1.CreateOptions{})
		if err != nil {
			t.Errorf("a pod without GPUs, while nothing of ours runs: %v", err)
		}
		down := s.untilSlices(ctx, begin, false)
		up := s.untilSlices(ctx, begin, true)
		t.Logf("slices were denied from %s to %s after all of our pods were deleted",
			down.Round(100*time.Millisecond), up.Round(100*time.Millisecond))
		if err := s.node.AwaitWebhook(ctx); err != nil {
			t.Fatal(err)
		}
		s.create(slice("4Gi", "after", sliced("trainer", "hold 1GiB")))
		if s.awaitRunning("after").Annotations[api.AnnotationPromise] == "" {
			t.Error("a pod created afterwards has no slice")
		}
		now := s.get("before")
		if now.UID != before.UID || now.Status.Phase != corev1.PodRunning || restarts(now) > restarts(before) {
			t.Errorf("the tenant was disturbed: %+v", now.Status)
		}
	})
}

// untilSlices asks for slices in dry runs until they are given, or denied, and says how long after begin that was.
func (s *stage) untilSlices(ctx context.Context, begin time.Time, given bool) time.Duration {
	s.Helper()
	for {
		_, err := s.node.Client.CoreV1().Pods(s.namespace).Create(ctx, slice("4Gi", "asking", sliced("trainer", "hold 1GiB")),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if ctx.Err() != nil {
			s.Fatalf("slices are given or not, want %v: %v", given, err)
		}
		if given == (err == nil) {
			return time.Since(begin)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// restarts is how often any container of the pod was started again.
func restarts(p *corev1.Pod) (n int32) {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range list {
			n += s.RestartCount
		}
	}
	return n
}
