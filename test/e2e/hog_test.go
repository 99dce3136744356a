package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
)

// shared is a GPU whose total is what all pods of the namespace hold.
func shared(s *stage) {
	s.Helper()
	s.gpu(fakegpu.Config{Devices: devices, Node: s.namespace})
	if err := s.node.ShareGPU(s.namespace); err != nil {
		s.Fatal(err)
	}
}

func TestHog(t *testing.T) {
	t.Parallel()
	t.Run("is terminated with an Event and nobody else notices", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{})
		shared(s)
		node := "node " + s.namespace
		s.create(slice("8Gi", "quiet", sliced("trainer", node, "device 0", "hold 7GiB")))
		s.awaitRunning("quiet")
		s.create(once(slice("8Gi", "hog",
			sliced("trainer", node, "device 0", "hold 2GiB", "wait 2s", "grow 2GiB 9GiB 2s"), tenant("beside", node))))
		if end := s.awaitEnd("hog", "trainer"); end.ExitCode != 143 {
			t.Errorf("the hog ended as %+v, want exit code 143 (SIGTERM)", end)
		}
		ended := s.awaitSaid("hog", "termination result", "gpuslice terminated")
		s.awaitSaid("hog", "near limit", "trainer uses")
		told := s.awaitEvent("hog", "what was ended", func(e *corev1.Event) bool { return strings.Contains(e.Message, "gpuslice terminated") })
		// Process, container, bytes, slice, device and time.
		sentence := regexp.MustCompile(`gpuslice terminated tenant \(pid \d+, [89](\.\d)?Gi\) in trainer: [89](\.\d)?Gi of 8Gi on GPU-\S+ for \d`)
		if !sentence.MatchString(told.Message) {
			t.Errorf("the Event says %q, want %s", told.Message, sentence)
		}
		if !strings.Contains(told.Message, ended.Message) {
			t.Errorf("the Event says %q, the log %q", told.Message, ended.Message)
		}
		if told.Type != corev1.EventTypeWarning {
			t.Errorf("the Event is %s, want a warning", told.Type)
		}
		held := regexp.MustCompile(`\S+ of 8Gi on GPU-\S+ for [^ ;,]+`).FindString(told.Message)
		abuse.Report(t,
			abuse.Attempt{Threat: "A7", Attack: "allocate beyond the slice", Outcome: abuse.Contained, Words: told.Message, Held: held})
		s.neverNoticed("quiet", "trainer", 50)
		s.neverNoticed("hog", "beside", 30)
		s.endsNobody("quiet")
	})
}

func TestHogOfTwoProcesses(t *testing.T) {
	t.Parallel()
	t.Run("each below the slice and together above it are one container", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		s.create(slice("8Gi", "pair", sliced("trainer", "hold 4GiB", "wait 2s", "fork 1 5GiB")))
		s.awaitSaid("pair", "termination result", "gpuslice terminated tenant", "9Gi of 8Gi")
		// Once one of them is gone, the other is within the slice.
		s.awaitBeats("pair", "trainer", 20)
		if all := s.saidOf("pair", "termination result"); len(all) != 1 {
			t.Errorf("the guard ended %d times: %+v", len(all), all)
		}
	})
}

func TestSpike(t *testing.T) {
	t.Parallel()
	t.Run("shorter than the grace period is forgiven", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "patient", fakegpu.Config{Devices: devices})
		s.create(once(slice("8Gi", "spiky", sliced("trainer", "hold 4GiB", "wait 2s", "spike 9GiB 3s", "wait 20s", "leave"))))
		s.awaitSaid("spiky", "near limit", "9Gi of its 8Gi")
		s.awaitSaid("spiky", "below limit")
		s.endsNobody("spiky")
		if end := s.awaitEnd("spiky", "trainer"); end.ExitCode != 0 {
			t.Errorf("the tenant ended as %+v", end)
		}
	})
}

func TestBurst(t *testing.T) {
	t.Parallel()
	t.Run("is allowed while there is room and terminated under pressure", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "pressure", fakegpu.Config{Devices: devices})
		p := slice("8Gi", "burst", sliced("trainer", "hold 10GiB"))
		p.Labels[api.LabelMemoryLimit] = "12Gi"
		s.create(once(p))
		s.awaitRunning("burst")
		s.awaitBeats("burst", "trainer", 40)
		s.endsNobody("burst")
		s.neverNoticed("burst", "trainer", 40)
		s.gpu(fakegpu.Config{Devices: devices, Fault: fakegpu.Fault{Others: 69 * fakegpu.GiB}})
		s.awaitSaid("burst", "termination result", "gpuslice terminated tenant", "10Gi of 8Gi")
		s.awaitEnd("burst", "trainer")
	})
}

func TestHogIgnoringSIGTERM(t *testing.T) {
	t.Parallel()
	t.Run("is killed", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		s.create(once(slice("8Gi", "stubborn", sliced("trainer", "ignore-term", "hold 2GiB", "wait 2s", "hold 9GiB"))))
		if end := s.awaitEnd("stubborn", "trainer"); end.ExitCode != 137 {
			t.Errorf("the tenant ended as %+v, want exit code 137 (SIGKILL)", end)
		}
		s.termTime("stubborn", "trainer") // it was asked before
		if ended := s.awaitSaid("stubborn", "termination result", "gpuslice terminated tenant"); ended.Signal != "SIGKILL" {
			t.Errorf("the guard said %+v", ended)
		}
	})
}

func TestHogThatForks(t *testing.T) {
	t.Parallel()
	t.Run("is terminated as a whole", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "strict", fakegpu.Config{Devices: devices})
		// The shell is what the container stands on, so that the container outlives the tenant.
		hydra := asking(shell("trainer", "/tenant fork-on-term 9GiB hold 2GiB wait 2s hold 9GiB; exec sleep 3600"))
		s.create(once(slice("8Gi", "hydra", hydra)))
		s.awaitSaid("hydra", "termination result", "gpuslice terminated tenant")
		if ended := s.awaitSaid("hydra", "termination result", "every process"); !strings.Contains(ended.Message,
			"gpuslice terminated every process in trainer") {
			t.Errorf("the guard said %q", ended.Message)
		}
		if end := s.awaitEnd("hydra", "trainer"); end.ExitCode == 0 {
			t.Errorf("the container ended as %+v", end)
		}
	})
}

// When the last container has ended the kubelet asks the guard no more, so that no Event tells why.
func TestHogThatEndsItsPod(t *testing.T) {
	t.Parallel()
	t.Run("the reason is the guard's last word", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		s.create(once(slice("8Gi", "alone", hog())))
		p := s.awaitPod("alone", "end of the guard", func(p *corev1.Pod) bool {
			return status(p, limits.GuardContainer).State.Terminated != nil
		})
		if said := status(p, limits.GuardContainer).State.Terminated.Message; !strings.Contains(said, "gpuslice terminated tenant") {
			t.Errorf("the guard's termination message is %q", said)
		}
	})
}

// A kubelet drops the Events of a pod after 25, whatever they are about.
func TestHogAfterManyEvents(t *testing.T) {
	t.Parallel()
	t.Run("pod and owner get the reason by another way, once", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		supervisor := asking(shell("trainer", "until [ -e /tmp/now ]; do sleep 0.2; done; /tenant hold 9GiB; exec sleep 3600"))
		noisy := shell("noisy", "exec sleep 3600")
		noisy.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1,
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "exit 1"}}}}
		pod := s.job("train", once(slice("8Gi", "train", supervisor, noisy)))
		p := s.awaitRunning(pod)
		s.exhaustEvents(pod)
		s.let(p, "trainer")
		ended := s.awaitSaid(pod, "termination result", "gpuslice terminated tenant")
		for _, about := range []string{pod, "train"} {
			told := s.awaitEvent(about, "what was terminated", func(e *corev1.Event) bool { return e.Reason == observe.ReasonTerminated })
			if !strings.HasSuffix(told.Message, ended.Message) || told.Count != 1 {
				t.Errorf("the Event on %s has %q, %d times; the log has %q", about, told.Message, told.Count, ended.Message)
			}
		}
		if end := status(s.get(pod), "trainer"); end.State.Running == nil || end.RestartCount != 0 {
			t.Errorf("the container did not live on: %+v", end)
		}
	})
}

// exhaustEvents waits until the kubelet has written as many Events of a pod as it writes of one in a row.
func (s *stage) exhaustEvents(pod string) {
	s.Helper()
	const burst = 25
	counts := map[types.UID]int32{}
	s.awaitEvent(pod, fmt.Sprintf("%d of the kubelet", burst), func(e *corev1.Event) bool {
		if e.Source.Component == "kubelet" {
			counts[e.UID] = e.Count
		}
		sum := int32(0)
		for _, n := range counts {
			sum += n
		}
		return sum >= burst
	})
}
