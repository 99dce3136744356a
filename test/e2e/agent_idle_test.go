package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAgentIdle(t *testing.T) {
	t.Parallel()
	t.Run("a slice in which nothing runs is reported to pod and owner, and none of which nobody knows", func(t *testing.T) {
		t.Parallel()
		s := withAgent(t, "policy=agent-idle")
		s.create(slice("8Gi", "unknown", byAgent("trainer", "hold 2GiB"))) // its device does not report what runs
		s.awaitRunning("unknown")
		pod := s.job("idle", once(slice("8Gi", "idle", sliced("trainer", "node "+agentNode, "device 2", "hold 2GiB"))))
		isIdle := func(e *corev1.Event) bool { return e.Reason == "GPUSliceIdle" }
		told := s.awaitEvent(pod, "that nothing runs", isIdle)
		if !strings.HasPrefix(told.Message, "nothing of trainer ran on a GPU for ") || !strings.Contains(told.Message, "its slice holds 8Gi") {
			t.Errorf("the Event says %q", told.Message)
		}
		s.awaitEvent("idle", "the same on the owner", func(e *corev1.Event) bool { return isIdle(e) && strings.HasSuffix(e.Message, told.Message) })
		s.neverNoticed(pod, "trainer", 10)
		if n := s.countEvents("unknown", isIdle); n > 0 {
			t.Errorf("%d Events about a slice of which nobody knows what runs", n)
		}
	})
}
