package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// A tenant is past its slice from its first moment, and the driver's readings are wrong until the test corrects them.
func TestUnreliableReading(t *testing.T) {
	t.Parallel()
	t.Run("terminates nobody and is reported", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			name   string
			fault  fakegpu.Fault
			reason string // in what the guard says
		}{
			{"processes of nobody", fakegpu.Fault{PIDs: "+100000"}, "which is no process of this pod"},
			{"zero memory", fakegpu.Fault{Figures: "zero"}, "gives no memory"},
			{"all ones", fakegpu.Fault{Figures: "all-ones"}, "gives no memory"},
			{"a call that hangs", fakegpu.Fault{Hang: []string{"nvmlDeviceGet*RunningProcesses*"}}, ""},
			{"a lost device", fakegpu.Fault{Fail: []fakegpu.Fail{{Call: "nvmlDeviceGet*RunningProcesses*", Return: "GPU_IS_LOST"}}}, ""},
		}
		for _, tc := range tests {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, "", fakegpu.Config{Devices: devices, Fault: tc.fault})
				s.create(once(slice("8Gi", "hog", sliced("trainer", "hold 9GiB"))))
				s.notEnforcingPromptly("hog", tc.reason)
				s.awaitBeats("hog", "trainer", 40)
				s.endsNobody("hog")
				s.gpu(fakegpu.Config{Devices: devices})
				s.awaitSaid("hog", "enforcing again")
				s.awaitSaid("hog", "termination result", "gpuslice terminated tenant")
			})
		}
	})
}

// notEnforcingPromptly checks that the guard says within ten seconds of the tenant's start that it cannot rely on the device.
func (s *stage) notEnforcingPromptly(pod, reason string) {
	s.Helper()
	told := s.awaitSaid(pod, "not enforcing", reason)
	if late := told.Time.Sub(s.firstBeat(pod, "trainer")); late > promptly {
		s.Errorf("said %v after the tenant began: %q", late, told.Message)
	}
}

// firstBeat is when a tenant began.
func (s *stage) firstBeat(pod, container string) time.Time {
	s.Helper()
	s.awaitLine(pod, container, "a beat", func(line string) bool { return strings.HasPrefix(line, "beat ") })
	at, _, _ := strings.Cut(s.log(pod, container, corev1.PodLogOptions{Timestamps: true}), " ")
	when, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		s.Fatal(err)
	}
	return when
}

func TestProcessListedTwice(t *testing.T) {
	t.Parallel()
	t.Run("counts once", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices, Fault: fakegpu.Fault{Duplicates: true}})
		s.create(once(slice("8Gi", "double", sliced("trainer", "hold 5GiB", "wait 20s", "hold 9GiB"))))
		s.awaitRunning("double")
		s.awaitBeats("double", "trainer", 25)
		s.endsNobody("double")
		s.awaitSaid("double", "termination result", "gpuslice terminated", "9Gi of 8Gi")
	})
}

func TestHostPIDs(t *testing.T) {
	t.Parallel()
	t.Run("a driver that reports them is only observed", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{})
		shared(s)
		s.gpu(fakegpu.Config{Devices: devices, Node: s.namespace, Fault: fakegpu.Fault{PIDs: "node"}})
		s.create(once(slice("8Gi", "hog", sliced("trainer", "node "+s.namespace, "hold 9GiB"))))
		s.notEnforcingPromptly("hog", "which is no process of this pod")
		s.awaitEvent("hog", "that the pod is not held to its slice", func(e *corev1.Event) bool {
			return strings.Contains(e.Message, "gpuslice cannot enforce this pod's slice")
		})
		s.awaitBeats("hog", "trainer", 10)
		s.endsNobody("hog")
		s.neverNoticed("hog", "trainer", 20)
	})
}
