package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
)

// attackers are the users that carry out each attack on the agent.
func attackers() map[string]func(corev1.Container) corev1.Container {
	return map[string]func(corev1.Container) corev1.Container{
		"root":     func(c corev1.Container) corev1.Container { return c },
		"non-root": func(c corev1.Container) corev1.Container { return strictly(c, 1000) },
	}
}

// onAgent are the attacks that tenants have on a guard, as pods that use 12Gi of an 8Gi slice on a node with an agent. A container that is
// named trainer does, and no other has a GPU.
var onAgent = []struct {
	name, threat, attack string
	pod                  func(agent *corev1.Pod, pids []int) *corev1.Pod
}{
	{"signals", "A9", "signal the agent by its number, and all that can be seen; flood sockets and the agent's port",
		func(agent *corev1.Pod, pids []int) *corev1.Pod {
			script := "while :; do "
			for _, pid := range pids {
				script += fmt.Sprintf("kill -STOP %d; kill -KILL %d; ", pid, pid)
			}
			p := slice("8Gi", "evil", byAgent("trainer", "hold 2GiB", "wait 5s", "hold 12GiB"),
				shell("killer", script+"kill -STOP -1; kill -KILL -1; sleep 0.2; done 2>/dev/null"),
				tenant("flood", "occupy 5000", "connect "+agent.Status.PodIP+":8080"))
			p.Spec.ShareProcessNamespace = new(false)
			return p
		}},
	{"signals-in-a-shared-namespace", "A9", "stop, in turns, every process of a shared PID namespace that is not the tenant's",
		func(*corev1.Pod, []int) *corev1.Pod {
			const others = `while :; do for signal in STOP CONT; do for p in /proc/[0-9]*; do
  case "$(cat $p/cmdline 2>/dev/null)" in *tenant*|*sh*|*sleep*) ;; *) kill -$signal ${p#/proc/};; esac
done; sleep 1; done; done 2>/dev/null`
			p := slice("8Gi", "evil", byAgent("trainer", "hold 2GiB", "wait 2s", "hold 12GiB"), shell("stopper", others))
			p.Spec.ShareProcessNamespace = new(true)
			return p
		}},
	{"files", "A9", "a FIFO in place of the termination log, and a volume with a folder as the kubelet's",
		func(*corev1.Pod, []int) *corev1.Pod {
			c := byAgent("trainer", "fifo /data/a/log", "hold 2GiB", "wait 2s", "hold 12GiB")
			c.TerminationMessagePath = "/data/a/log"
			c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/data"},
				{Name: "v", MountPath: "/mnt", SubPath: "pods/mine/containers/other/0"}}
			p := slice("8Gi", "evil", c)
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			return p
		}},
	{"turns", "A7", "allocate and free in turns",
		func(*corev1.Pod, []int) *corev1.Pod {
			steps := []string{"hold 1GiB", "wait 2s"}
			for range 100 {
				steps = append(steps, "spike 12GiB 700ms", "wait 400ms")
			}
			return slice("8Gi", "evil", byAgent("trainer", steps...))
		}},
	{"processes", "A27", "a second device, among many processes",
		func(*corev1.Pod, []int) *corev1.Pod {
			const script = `i=0; while [ $i -lt 60 ]; do sleep 600 & i=$((i+1)); done
/tenant 'node ` + agentNode + `' 'device 0' 'hold 6GiB' & exec /tenant 'node ` + agentNode + `' 'device 1' 'wait 2s' 'hold 6GiB'`
			return slice("8Gi", "evil", asking(shell("trainer", script)))
		}},
}

// TestAgentAttacks: none of the attacks on a guard has an effect on an agent.
func TestAgentAttacks(t *testing.T) {
	t.Parallel()
	for user, as := range attackers() {
		for _, attack := range onAgent {
			t.Run(attack.name+" as "+user, func(t *testing.T) {
				t.Parallel()
				s := withAgent(t)
				agent := s.agentPod()
				p := attack.pod(agent, s.agents())
				for i := range p.Spec.Containers {
					p.Spec.Containers[i] = as(p.Spec.Containers[i])
				}
				s.create(once(p))
				told := s.awaitTerminated("evil")
				if late := overFor(t, told.Message); late > promptly || !strings.Contains(told.Message, " in trainer: ") {
					t.Errorf("after %s: %s", late, told.Message)
				}
				if now := s.agentPod(); now.UID != agent.UID || status(now, "agent").RestartCount != status(agent, "agent").RestartCount {
					t.Errorf("the agent was started again: %+v", status(now, "agent"))
				}
				abuse.Report(t, abuse.Attempt{Threat: attack.threat,
					Attack: attack.attack + ", against an agent, as " + user, Outcome: abuse.Contained, Words: told.Message})
			})
		}
	}
}

// TestAgentHogAfterManyEvents: what kubelets write takes no Event from an agent.
func TestAgentHogAfterManyEvents(t *testing.T) {
	t.Parallel()
	s := withAgent(t)
	noisy := shell("noisy", "exec sleep 3600")
	noisy.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "exit 1"}}}}
	s.create(once(slice("8Gi", "train", byAgent("trainer", "hold 2GiB", "wait 26s", "hold 12GiB"), noisy)))
	s.exhaustEvents("train")
	told := s.awaitTerminated("train")
	abuse.Report(t, abuse.Attempt{Threat: "A9", Attack: "use up the kubelet's Events about a pod, against an agent",
		Outcome: abuse.Contained, Words: told.Message})
}

// overFor returns how long a container was over its slice when a process was terminated, as the Event has it.
func overFor(t *testing.T, message string) time.Duration {
	t.Helper()
	found := regexp.MustCompile(` for ([0-9.]+m?s)`).FindStringSubmatch(message)
	if found == nil {
		t.Fatalf("no duration in %q", message)
	}
	d, err := time.ParseDuration(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// agentPod is the pod of the node's agent.
func (s *stage) agentPod() *corev1.Pod {
	s.Helper()
	list, err := s.node.Client.CoreV1().Pods(api.SystemNamespace).List(s.Context(),
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=agent"})
	if err != nil || len(list.Items) != 1 {
		s.Fatalf("%d agents: %v", len(list.Items), err)
	}
	return &list.Items[0]
}

// TestAgentAttackByPID uses memory in processes that hide from who reads /proc, and under the number of another pod's. The driver goes on
// listing them; so does the fake library, which reads command lines otherwise.
func TestAgentAttackByPID(t *testing.T) {
	t.Parallel()
	s := withAgent(t)
	leaver := exec.Command("/bin/sleep", "600")
	if err := leaver.Start(); err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{"leaver": leaver.Process.Pid}
	for user, as := range attackers() {
		name := "undead-" + user
		s.create(once(slice("8Gi", name, as(byAgent("trainer", "wait 6s", "end-first-thread", "say undead")))))
		pids[name] = s.processes(s.awaitRunning(name), "trainer")[0]
		s.awaitLine(name, "trainer", "the end of its first thread", func(line string) bool { return line == "undead" })
		name = "traced-" + user
		s.create(once(slice("8Gi", name, as(byAgent("trainer", "crowd 24", "say crowd", "wait 6s", "end-threads", "say undead")))))
		s.awaitLine(name, "trainer", "the crowd", func(line string) bool { return line == "crowd" })
		pids[name] = s.crowd(s.get(name), "trainer")
		s.awaitLine(name, "trainer", "the end of its threads", func(line string) bool { return line == "undead" })
	}
	agent, listed := agentGPU, fakegpu.Fault{}
	for _, pid := range pids {
		listed.Listed = append(listed.Listed, fakegpu.Listed{PID: pid, Held: 12 * fakegpu.GiB})
		listed.Others += 12 * fakegpu.GiB
	}
	agent.On = maps.Clone(agentGPU.On)
	agent.On[3] = listed
	t.Cleanup(func() {
		if err := s.node.GPU(api.SystemNamespace, agentGPU); err != nil {
			t.Error(err)
		}
	})
	if err := s.node.GPU(api.SystemNamespace, agent); err != nil {
		t.Fatal(err)
	}
	for user := range attackers() {
		told := s.awaitTerminated("undead-" + user)
		abuse.Report(t,
			abuse.Attempt{Threat: "A27", Attack: "use memory in a process whose first thread has exited, against an agent, as " + user,
				Outcome: abuse.Contained, Words: told.Message})
		told = s.awaitTerminated("traced-" + user)
		abuse.Report(t, abuse.Attempt{Threat: "A27",
			Attack:  "use memory in a process whose first 24 threads have exited and are traced, against an agent, as " + user,
			Outcome: abuse.Contained, Words: told.Message})
	}
	_ = leaver.Process.Kill()
	_ = leaver.Wait()
	const forks = `/tenant 'node ` + agentNode +
		`' 'device 0' 'hold 6GiB' & i=0; while [ $i -lt 400 ]; do sleep 600 & i=$((i+1)); sleep 0.1; done; wait`
	s.create(once(slice("8Gi", "victim", asking(shell("trainer", forks)))))
	s.inherit(s.awaitRunning("victim"), "trainer", pids["leaver"])
	told := s.awaitEvent("victim", "that memory is nobody's", func(e *corev1.Event) bool {
		return strings.Contains(e.Message, "12Gi in use") && strings.Contains(e.Message, "is nobody's")
	})
	if err := syscall.Kill(pids["leaver"], 0); err != nil {
		t.Errorf("who got the PID: %v", err)
	}
	if now := status(s.get("victim"), "trainer"); now.State.Running == nil {
		t.Errorf("the victim is %+v", now.State)
	}
	abuse.Report(t, abuse.Attempt{Threat: "A27", Attack: "leave memory under a PID that a process of another pod gets, against an agent",
		Outcome: abuse.Reported, Words: told.Message})
}

// crowd returns the process of a container that has many threads.
func (s *stage) crowd(p *corev1.Pod, container string) int {
	s.Helper()
	for _, pid := range s.processes(p, container) {
		if threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)); err == nil && len(threads) > 20 {
			return pid
		}
	}
	s.Fatalf("no process of %s has many threads", container)
	return 0
}

// inherit waits until a process of a container that forks has the PID. In earnest a PID comes round only after all others.
func (s *stage) inherit(p *corev1.Pod, container string, pid int) {
	s.Helper()
	_, id, _ := strings.Cut(status(p, container).ContainerID, "://")
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			s.Fatal(err)
		}
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(text), id) && string(command) == "sleep\x00600\x00" {
			return
		}
		select {
		case <-s.Context().Done():
		case <-time.After(time.Millisecond):
		}
	}
	s.Fatalf("no process of %s got the PID %d", container, pid)
}

// TestAgentAttackWithoutSlice uses memory where no slice is, by a device that another container or pod was given.
func TestAgentAttackWithoutSlice(t *testing.T) {
	t.Parallel()
	s := withAgent(t)
	hog := []string{"node " + agentNode, "device 0", "wait 2s", "hold 30GiB"}
	s.create(once(slice("8Gi", "beside", byAgent("trainer", "hold 2GiB"), strictly(tenant("loader", hog...), 1000))))
	s.create(once(plain("bare", strictly(tenant("loader", hog...), 1000))))
	told := s.awaitTerminated("beside")
	if !strings.Contains(told.Message, " in loader: 30Gi of 6Gi on ") {
		t.Errorf("the Event says %q", told.Message)
	}
	s.neverNoticed("beside", "trainer", 10)
	abuse.Report(t, abuse.Attempt{Threat: "A2", Attack: "use memory in a container without a slice, beside one that has, against an agent",
		Outcome: abuse.Contained, Words: told.Message})
	told = s.awaitEvent("bare", "that it was given no GPU", func(e *corev1.Event) bool {
		return strings.Contains(e.Message, "uses 30Gi on ") && strings.Contains(e.Message, "given no GPU")
	})
	abuse.Report(t, abuse.Attempt{Threat: "A2", Attack: "use memory in a pod that was given no GPU, against an agent",
		Outcome: abuse.Reported, Words: told.Message})
	s.create(slice("8Gi", "small", byAgent("trainer", "hold 2GiB"), tenant("loader", "node "+agentNode, "device 0", "hold 1GiB")))
	s.awaitPod("small", "what is observed", func(p *corev1.Pod) bool {
		o, err := observe.DecodeObservation(p.Annotations[api.AnnotationObserved])
		return err == nil && o.State == observe.Degraded &&
			slices.ContainsFunc(o.Reasons, func(r string) bool { return strings.Contains(r, " in loader uses 1Gi") })
	})
}
