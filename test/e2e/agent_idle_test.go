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
		s.awaitEvent("idle", "the same on the owner",
			func(e *corev1.Event) bool { return isIdle(e) && strings.HasSuffix(e.Message, told.Message) })
		s.neverNoticed(pod, "trainer", 10)
		if n := s.countEvents("unknown", isIdle); n > 0 {
			t.Errorf("%d Events about a slice of which nobody knows what runs", n)
		}
	})
	t.Run("what it holds of a GPU is terminated where the policy says so, after the Event", func(t *testing.T) {
		t.Parallel()
		s := withAgent(t, "policy=agent-idle-ends")
		s.create(slice("8Gi", "unknown", byAgent("trainer", "hold 2GiB")))
		s.awaitRunning("unknown")
		s.create(once(slice("8Gi", "idle", sliced("trainer", "node "+agentNode, "device 2", "hold 2GiB"))))
		before := s.awaitEvent("idle", "that nothing runs", func(e *corev1.Event) bool { return e.Reason == "GPUSliceIdle" })
		if !strings.Contains(before.Message, "idle.terminate") {
			t.Errorf("the Event before says %q", before.Message)
		}
		if end := s.awaitEnd("idle", "trainer"); end.ExitCode != 143 {
			t.Errorf("the idle process ended as %+v, want exit code 143 (SIGTERM)", end)
		}
		told := s.awaitTerminated("idle")
		if !strings.Contains(told.Message, "idle.terminate") || !before.FirstTimestamp.Before(&told.FirstTimestamp) {
			t.Errorf("the Event at %v says %q, the one before came at %v", told.FirstTimestamp, told.Message, before.FirstTimestamp)
		}
		s.neverNoticed("unknown", "trainer", 20)
	})
}
