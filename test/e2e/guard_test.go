package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// signalGuard is a script of a tenant who is root, and so may signal the guard: it waits for a file, which the test
// writes, and then does.
func signalGuard(signal string) string {
	return `until [ -e /tmp/now ]; do sleep 0.2; done
for p in /proc/[1-9]*; do
  case "$(cat $p/cmdline 2>/dev/null)" in /gpuslice-guard*run*) kill -` + signal + ` ${p#/proc/} && echo signalled;; esac
done
exec sleep 3600`
}

// let tells a script that waits for it to go on.
func (s *stage) let(p *corev1.Pod, container string) {
	s.Helper()
	path := fmt.Sprintf("/proc/%d/root/tmp/now", s.processes(p, container)[0])
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		s.Fatal(err)
	}
}

// guardsAgain checks that a guard that was started again tells of the gap, and holds the pod as before: its tenant trainer, which has been
// within the slice so far, goes past it when it is let.
func (s *stage) guardsAgain(pod string) {
	s.Helper()
	p := s.awaitGuardAgain(pod)
	gap := "the slice of trainer was not enforced in between"
	s.awaitSaid(pod, "restarted", gap)
	s.awaitEvent(pod, "the gap", func(e *corev1.Event) bool { return strings.Contains(e.Message, gap) })
	s.neverNoticed(pod, "bystander", 10)
	s.let(p, "trainer")
	s.awaitSaid(pod, "termination result", "gpuslice terminated tenant")
}

// patientHog is a GPU container that goes past 8 GiB when it is let.
func patientHog() corev1.Container {
	return asking(shell("trainer", "until [ -e /tmp/now ]; do sleep 0.2; done; exec /tenant hold 9GiB"))
}

func TestGuardKilled(t *testing.T) {
	t.Parallel()
	t.Run("one that a root tenant kills is back and guards", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		s.create(once(slice("8Gi", "rebel", patientHog(), shell("killer", signalGuard("KILL")), tenant("bystander"))))
		s.let(s.awaitRunning("rebel"), "killer")
		s.awaitLine("rebel", "killer", "a signal", func(line string) bool { return line == "signalled" })
		s.guardsAgain("rebel")
		abuse.Report(t,
			abuse.Attempt{Threat: "A9", Attack: "kill the guard as root", Outcome: abuse.Reported, Words: "the guard is back and guards"})
		end := status(s.get("rebel"), limits.GuardContainer).LastTerminationState.Terminated
		if end == nil || end.ExitCode != 137 {
			t.Errorf("the pod says of the guard's end: %+v, want exit code 137", end)
		}
	})
}

// A guard that is stopped neither guards nor answers, so that three probes, half a minute apart, and the kubelet's
// patience with a process that does not end pass before it is back.
func TestGuardStopped(t *testing.T) {
	t.Parallel()
	t.Run("one that a root tenant stops is back and guards", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		s.create(once(slice("8Gi", "rebel", patientHog(), shell("stopper", signalGuard("STOP")), tenant("bystander"))))
		s.let(s.awaitRunning("rebel"), "stopper")
		s.awaitLine("rebel", "stopper", "a signal", func(line string) bool { return line == "signalled" })
		s.awaitEvent("rebel", "a probe without an answer", func(e *corev1.Event) bool {
			return e.Reason == "Unhealthy" && strings.Contains(e.InvolvedObject.FieldPath, limits.GuardContainer)
		})
		abuse.Report(t, abuse.Attempt{Threat: "A9", Attack: "stop the guard as root", Outcome: abuse.Reported,
			Words: "probes fail; the guard is restarted and guards"})
		s.guardsAgain("rebel")
	})
}

func TestGuardOutOfMemory(t *testing.T) {
	t.Parallel()
	t.Run("one that runs out of memory is back and guards", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		s.create(once(slice("8Gi", "starved", patientHog(), tenant("bystander"))))
		s.starve(s.processes(s.awaitRunning("starved"), limits.GuardContainer)[0])
		s.guardsAgain("starved")
		end := status(s.get("starved"), limits.GuardContainer).LastTerminationState.Terminated
		if end == nil || end.Reason != "OOMKilled" {
			t.Errorf("the pod says of the guard's end: %+v, want OOMKilled", end)
		}
	})
}

// starve lets a process of the test's own use up the memory of the container that a process is in, and makes that
// process the one that the kernel ends for it.
func (s *stage) starve(pid int) {
	s.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0o644); err != nil {
		s.Fatal(err)
	}
	eater := exec.CommandContext(s.Context(), "/bin/sh", "-c",
		`echo $$ > "$0" && exec tail /dev/zero`, filepath.Join(s.cgroupOf(pid), "cgroup.procs"))
	if out, err := eater.CombinedOutput(); err == nil {
		s.Fatalf("the memory did not run out: %s", out)
	}
}
