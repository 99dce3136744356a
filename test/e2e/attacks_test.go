package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// TestAttackOnProbes tries to make the guard's probes fail, and to keep it from
// starting again, from the network namespace that all containers of a pod share.
func TestAttackOnProbes(t *testing.T) {
	t.Parallel()
	s := newStage(t, "", fakegpu.Config{Devices: devices})
	s.create(once(slice("8Gi", "rebel", patientHog(), shell("killer", signalGuard("KILL")),
		tenant("flood", "occupy 5000", "say flooded"), tenant("bystander"))))
	p := s.awaitRunning("rebel")
	s.awaitLine("rebel", "flood", "the flood", func(line string) bool { return line == "flooded" })
	s.let(p, "killer")
	s.awaitLine("rebel", "killer", "a signal", func(line string) bool { return line == "signalled" })
	s.guardsAgain("rebel")
	s.awaitEvent("rebel", "what was terminated",
		func(e *corev1.Event) bool { return strings.Contains(e.Message, "gpuslice terminated tenant") })
	if g := status(s.get("rebel"), limits.GuardContainer); g.RestartCount != 1 {
		t.Errorf("the guard was started again %d times", g.RestartCount)
	}
	abuse.Report(s.T, abuse.Attempt{Threat: "A9", Attack: "flood the network namespace with sockets, and kill the guard",
		Outcome: abuse.Reported, Words: "probes answer; the guard is back and guards"})
}

// TestAttackByFIFO puts a FIFO in the place of the container's termination log,
// which the guard may open: the tenant has its user and no more capabilities.
func TestAttackByFIFO(t *testing.T) {
	t.Parallel()
	s := newStage(t, "", fakegpu.Config{Devices: devices})
	evil := sliced("trainer", "fifo /data/a/log", "hold 2GiB", "wait 2s", "hold 30GiB")
	evil.TerminationMessagePath = "/data/a/log"
	evil.VolumeMounts = []corev1.VolumeMount{{Name: "work", MountPath: "/data"}}
	evil.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	p := slice("8Gi", "evil", evil, tenant("beside"))
	p.Spec.Volumes = []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	s.create(once(p))
	told := s.awaitSaid("evil", "termination result", "gpuslice terminated tenant")
	s.neverNoticed("evil", "beside", 5)
	abuse.Report(s.T,
		abuse.Attempt{Threat: "A9", Attack: "a FIFO in place of the termination log", Outcome: abuse.Contained, Words: told.Message})
}

// TestAttackByTurns is over the slice for most of the time, and never for the
// grace period in a row.
func TestAttackByTurns(t *testing.T) {
	t.Parallel()
	s := newStage(t, "", fakegpu.Config{Devices: devices})
	turns := []string{"hold 1GiB", "wait 2s"}
	for range 100 {
		turns = append(turns, "spike 30GiB 700ms", "wait 400ms")
	}
	s.create(once(slice("8Gi", "saw", sliced("trainer", turns...))))
	told := s.awaitSaid("saw", "termination result", "gpuslice terminated tenant")
	if end := s.awaitEnd("saw", "trainer"); end.ExitCode == 0 {
		t.Errorf("the tenant ended as %+v", end)
	}
	abuse.Report(s.T, abuse.Attempt{Threat: "A7", Attack: "allocate and free in turns", Outcome: abuse.Contained, Words: told.Message})
}

// TestAttackOnNames hides or forges what tells the guard a container's name.
func TestAttackOnNames(t *testing.T) {
	t.Parallel()
	t.Run("a volume with a folder as the kubelet's", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		evil := sliced("trainer", "hold 2GiB", "wait 2s", "hold 30GiB")
		evil.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/mnt", SubPath: "pods/mine/containers/other/0"}}
		p := slice("8Gi", "evil", evil)
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		s.create(once(p))
		told := s.awaitSaid("evil", "termination result", "gpuslice terminated tenant", "in trainer")
		abuse.Report(s.T,
			abuse.Attempt{Threat: "A27", Attack: "a volume with a folder as the kubelet's", Outcome: abuse.Contained, Words: told.Message})
	})
	t.Run("a root without its mounts", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		s.create(once(slice("8Gi", "evil", sliced("trainer", "chroot /proc", "hold 2GiB", "wait 12s", "hold 30GiB"))))
		s.awaitSaid("evil", "unnamed container")
		told := s.awaitSaid("evil", "termination result", "gpuslice terminated tenant", "30Gi of 8Gi")
		abuse.Report(s.T,
			abuse.Attempt{Threat: "A27", Attack: "hide the mounts that tell the container's name", Outcome: abuse.Contained, Words: told.Message})
	})
}

// TestAttackByZombie uses memory in a process whose first thread has exited. The
// driver goes on listing such a process; so does the fake library, which reads
// command lines otherwise.
func TestAttackByZombie(t *testing.T) {
	t.Parallel()
	s := newStage(t, "", fakegpu.Config{Devices: devices})
	s.create(once(slice("8Gi", "undead", sliced("trainer", "wait 20s", "end-first-thread", "say undead"), tenant("bystander"))))
	pid := s.numberInPod(s.processes(s.awaitRunning("undead"), "trainer")[0]) // of a zombie the kernel tells nobody's cgroup
	s.awaitLine("undead", "trainer", "the end of its first thread", func(line string) bool { return line == "undead" })
	held := 30 * fakegpu.GiB
	s.gpu(fakegpu.Config{Devices: devices, On: map[int]fakegpu.Fault{0: {Others: held, Listed: []fakegpu.Listed{{PID: pid, Held: held}}}}})
	told := s.awaitSaid("undead", "termination result", "gpuslice terminated tenant", "in trainer")
	s.awaitEnd("undead", "trainer")
	s.neverNoticed("undead", "bystander", 5)
	abuse.Report(s.T, abuse.Attempt{Threat: "A27", Attack: "use memory in a process whose first thread has exited",
		Outcome: abuse.Contained, Words: told.Message})
}

// numberInPod is a process's number in its own PID namespace.
func (s *stage) numberInPod(pid int) int {
	s.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		s.Fatal(err)
	}
	_, line, _ := strings.Cut(string(text), "\nNSpid:")
	numbers := strings.Fields(strings.SplitN(line, "\n", 2)[0])
	if len(numbers) == 0 {
		s.Fatalf("process %d has no number in its pod", pid)
	}
	n, err := strconv.Atoi(numbers[len(numbers)-1])
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// TestAttackByStops stops the guard for most of the time, and lets it go on
// before the kubelet loses patience.
func TestAttackByStops(t *testing.T) {
	t.Parallel()
	s := newStage(t, "", fakegpu.Config{Devices: devices})
	const breaks = `until [ -e /tmp/now ]; do sleep 0.2; done
while :; do for signal in STOP CONT; do
  for p in /proc/[1-9]*; do
    case "$(cat $p/cmdline 2>/dev/null)" in /gpuslice-guard*run*) kill -$signal ${p#/proc/};; esac
  done
  if [ $signal = STOP ]; then sleep 9; else sleep 1; fi
done; done`
	s.create(once(slice("8Gi", "rebel", patientHog(), shell("stopper", breaks))))
	p := s.awaitRunning("rebel")
	s.let(p, "stopper")
	s.awaitSaid("rebel", "not enforcing", "the guard did not sample the devices for")
	s.let(p, "trainer")
	s.awaitSaid("rebel", "termination result", "gpuslice terminated tenant")
	s.awaitEvent("rebel", "that the guard was late", func(e *corev1.Event) bool {
		return strings.Contains(e.Message, "the guard did not sample the devices for")
	})
}
