package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/install"
)

// The agent is away while a tenant goes past its slice. Not parallel: other tests count on the agent.
func TestAgentInterrupted(t *testing.T) {
	for _, tc := range []struct {
		name string
		// away takes the agent away, calls during, and returns once the agent is back. It returns how long nothing was guarded, at most.
		away func(s *stage, during func()) time.Duration
	}{
		{"killed", (*stage).killAgent},
		{"stopped for three seconds", (*stage).stopAgent},
		{"upgraded", (*stage).upgradeAgent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := withAgent(t)
			s.create(slice("8Gi", "quiet", byAgent("trainer", "hold 7GiB")))
			trainer := asking(shell("trainer",
				"until [ -e /tmp/now ]; do sleep 0.2; done; exec /tenant 'node "+agentNode+"' 'device 0' 'hold 9GiB'"))
			s.create(once(slice("8Gi", "hog", trainer, tenant("beside"))))
			s.awaitRunning("quiet")
			p := s.awaitRunning("hog")
			gap := tc.away(s, func() { s.let(p, "trainer") })
			back := time.Now()
			s.awaitTerminated("hog")
			t.Logf("%s: nothing was guarded for %s at most; a tenant that was past its slice then was terminated within %s", tc.name,
				gap.Round(10*time.Millisecond), time.Since(back).Round(10*time.Millisecond))
			s.neverNoticed("quiet", "trainer", 10)
			s.neverNoticed("hog", "beside", 10)
		})
	}
}

func (s *stage) signalAgent(signal syscall.Signal) []int {
	s.Helper()
	all := s.agents()
	for _, agent := range all {
		if err := syscall.Kill(agent, signal); err != nil {
			s.Fatal(err)
		}
	}
	return all
}

func (s *stage) killAgent(during func()) time.Duration {
	s.Helper()
	restarts := status(s.agentPod(), "agent").RestartCount
	began := time.Now()
	s.signalAgent(syscall.SIGKILL)
	during()
	s.awaitAgent("one that was restarted", func(p *corev1.Pod) bool { return status(p, "agent").RestartCount > restarts })
	return time.Since(began)
}

func (s *stage) stopAgent(during func()) time.Duration {
	s.Helper()
	began := time.Now()
	s.signalAgent(syscall.SIGSTOP)
	during()
	s.awaitLine("hog", "trainer", "15 beats past the slice", func(line string) bool { return strings.HasPrefix(line, "beat 15 ") })
	s.signalAgent(syscall.SIGCONT)
	return time.Since(began)
}

// upgradeAgent rolls the DaemonSet, as a new image does.
func (s *stage) upgradeAgent(during func()) time.Duration {
	s.Helper()
	before, processes := s.agentPod(), s.agents()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{
		"template": map[string]any{"metadata": map[string]any{"annotations": map[string]string{"rolled": time.Now().String()}}},
	}})
	if err != nil {
		s.Fatal(err)
	}
	if _, err := s.node.Client.AppsV1().DaemonSets(api.SystemNamespace).Patch(s.Context(), install.AgentName,
		types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for range look.C {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", processes[0])); err != nil {
			break
		}
	}
	began := time.Now()
	during()
	s.awaitAgent("a new one", func(p *corev1.Pod) bool { return p.UID != before.UID })
	return time.Since(began)
}

// awaitAgent returns once the node's agent is as wanted, and ready.
func (s *stage) awaitAgent(what string, wanted func(*corev1.Pod) bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), within)
	defer cancel()
	w, err := s.node.Client.CoreV1().Pods(api.SystemNamespace).Watch(ctx,
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=agent"})
	if err != nil {
		s.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if p, ok := e.Object.(*corev1.Pod); ok && wanted(p) && status(p, "agent").Ready {
			return
		}
	}
	s.Fatalf("no agent: %s", what)
}
