package proc

import (
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

const (
	podA = "0aa1b2c3-4d5e-6f70-8192-a3b4c5d6e7f8"
	podB = "0bb1b2c3-4d5e-6f70-8192-a3b4c5d6e7f8"
)

// containerID returns the ID of a test's container.
func containerID(name string) string { return fmt.Sprintf("%064x", name) }

// nodeSessions makes each session of real processes a container of a pod of a
// node, "POD/CONTAINER".
type nodeSessions struct {
	sessions
}

func (s nodeSessions) Read(process, file string) (string, error) {
	if file != "cgroup" {
		return s.files.Read(process, file)
	}
	if process == "self" {
		return "0::/\n", nil
	}
	pod, container, found := strings.Cut(s.containers[s.session(process)], "/")
	if !found {
		return "0::/../../../system.slice/ssh.service\n", nil
	}
	return "0::/../../pod" + pod + "/" + containerID(container) + "\n", nil
}

// onNode returns a node with the processes, and the pod's view of it.
func onNode(t testing.TB, uid string, containers map[string]*process) Pod {
	t.Helper()
	s := nodeSessions{sessions{files: "/proc", containers: map[string]string{}}}
	p := Pod{UID: uid, Containers: map[string]string{}}
	for name, process := range containers {
		s.containers[strconv.Itoa(process.Process.Pid)] = name
		if pod, container, _ := strings.Cut(name, "/"); pod == uid {
			p.Containers[containerID(container)] = container
		}
	}
	var err error
	if p.Node, err = NewNode(s); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p Pod) order(process *process, kind guard.OrderKind) guard.Order {
	named := p.Name(guard.Process{PID: process.Process.Pid, UsedBytes: 1, Known: true})
	return guard.Order{Kind: kind, Container: named.Container, Process: named}
}

func TestNodePodName(t *testing.T) {
	t.Parallel()
	trainer, unknown, neighbor, outside := start(t, "obeys"), start(t, "obeys"), start(t, "obeys"), start(t, "obeys")
	pod := onNode(t, podA, map[string]*process{podA + "/trainer": trainer, podA + "/sandbox": unknown, podB + "/trainer": neighbor})
	delete(pod.Containers, containerID("sandbox"))
	for _, c := range []struct {
		name      string
		pid       int
		container string
		protected bool
	}{
		{"the pod's", trainer.Process.Pid, "trainer", false},
		{"of a container that the kubelet does not report", unknown.Process.Pid, guard.UnnamedContainer, false},
		{"another pod's", neighbor.Process.Pid, "", true},
		{"the node's", outside.Process.Pid, "", true},
		{"the agent", os.Getpid(), "", true},
		{"the first process", 1, "", true},
		{"nobody", 1 << 22, "", true},
	} {
		if got := pod.Name(guard.Process{PID: c.pid}); got.Container != c.container || got.Protected != c.protected {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestNodeTerminates(t *testing.T) {
	t.Parallel()
	trainer, neighbor := start(t, "obeys"), start(t, "obeys")
	pod := onNode(t, podA, map[string]*process{podA + "/trainer": trainer, podB + "/trainer": neighbor})
	terminator := &Terminator{Processes: pod, TermGrace: 5 * time.Second}
	out := terminate(t, terminator, pod.order(trainer, guard.TerminateProcess))
	if out.Result != guard.Terminated || out.Signal != "SIGTERM" {
		t.Errorf("the pod's process: %+v", out)
	}
	if status := wait(trainer.Cmd); !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("the pod's process ended with %v", status)
	}
	unharmed(t, neighbor)
}

func TestNodeTerminatesContainer(t *testing.T) {
	t.Parallel()
	trainer, scorer, neighbor := start(t, "ignores"), start(t, "ignores"), start(t, "ignores")
	pod := onNode(t, podA, map[string]*process{podA + "/trainer": trainer, podA + "/scorer": scorer, podB + "/trainer": neighbor})
	out := terminate(t, &Terminator{Processes: pod}, guard.Order{Kind: guard.TerminateContainer, Container: "trainer"})
	if out.Result != guard.Terminated || out.Signal != "SIGKILL" {
		t.Errorf("the container: %+v", out)
	}
	unharmed(t, scorer)
	unharmed(t, neighbor)
}

func TestNodeNamed(t *testing.T) {
	t.Parallel()
	trainer, scorer := start(t, "ignores"), start(t, "ignores")
	pod := onNode(t, podA, map[string]*process{podA + "/trainer": trainer, podA + "/scorer": scorer})
	for _, c := range []struct {
		order guard.Order
		want  int
	}{
		{guard.Order{Kind: guard.TerminateContainer, Container: "trainer", Process: guard.Process{PID: scorer.Process.Pid}}, trainer.Process.Pid},
		{guard.Order{Kind: guard.TerminateProcess, Container: "trainer", Process: guard.Process{PID: scorer.Process.Pid}}, scorer.Process.Pid},
	} {
		if got := pod.Named(c.order); !slices.Contains(got, c.want) || len(got) != 1 {
			t.Errorf("%v names %v, want %d", c.order.Kind, got, c.want)
		}
	}
}

// TestNodeDoesNotTerminate: what is not the pod's by the time of the signal is
// left alone, whatever the order says.
func TestNodeDoesNotTerminate(t *testing.T) {
	t.Parallel()
	neighbor := start(t, "counts")
	name := podB + "/trainer"
	pod := onNode(t, podA, map[string]*process{name: neighbor})
	theirs := Pod{Node: pod.Node, UID: podB, Containers: map[string]string{containerID("trainer"): "trainer"}}
	order := theirs.order(neighbor, guard.TerminateProcess)
	if out := terminate(t, &Terminator{Processes: pod}, order); out.Result != guard.Gone {
		t.Errorf("another pod's process: %+v", out)
	}
	moved := Pod{Node: pod.Node, UID: podB, Containers: map[string]string{containerID("trainer"): "other"}}
	if out := terminate(t, &Terminator{Processes: moved}, order); out.Result != guard.Gone {
		t.Errorf("a process of another container: %+v", out)
	}
	order.Process.Start++
	if out := terminate(t, &Terminator{Processes: theirs}, order); out.Result != guard.Gone {
		t.Errorf("another process with its PID: %+v", out)
	}
	if out := terminate(t, &Terminator{Processes: theirs},
		guard.Order{Kind: guard.TerminateContainer, Container: "scorer"}); out.Result != guard.Gone {
		t.Errorf("a container that does not run: %+v", out)
	}
	unharmed(t, neighbor)
}

// TestNow: a process began before now, and after it is started.
func TestNow(t *testing.T) {
	t.Parallel()
	before := files("/proc").Now()
	began := startOf(t, start(t, "obeys").Process.Pid)
	if after := files("/proc").Now(); before == 0 || began < before || began > after {
		t.Errorf("a process began at %d, between %d and %d", began, before, after)
	}
}

// readings is a /proc of texts, "PID/FILE".
type readings map[string]string

func (r readings) Read(process, file string) (string, error) {
	text, found := r[process+"/"+file]
	if !found {
		return "", os.ErrNotExist
	}
	return text, nil
}
func (r readings) Threads(int) iter.Seq[int] { return func(func(int) bool) {} }
func (r readings) PIDs() []int               { return nil }
func (r readings) Now() uint64               { return 1 }

func TestNewNode(t *testing.T) {
	t.Parallel()
	in := "0::/kubepods/pod" + podA + "/" + containerID("agent") + "\n"
	for _, c := range []struct {
		name, own, first string
		self             int
		ok               bool
	}{
		{"host PID, private cgroup namespace", "0::/\n", "0::/../../../../init.scope\n", 900, true},
		{"host PID, the node's cgroup namespace", in, "0::/init.scope\n", 900, true},
		{"host PID, a first process in no cgroup", in, "4:memory:/\n0::/\n", 900, true},
		{"a namespace of its own", "0::/\n", "0::/\n", 1, false},
		{"a namespace that the pod shares, private cgroup namespace", "0::/\n", "0::/../" + containerID("pause") + "\n", 7, false},
		{"a namespace that the pod shares, crun", "0::/\n", "0::/../../" + containerID("pause") + "/container\n", 7, false},
		{"a namespace that the pod shares", in, "0::/kubepods/pod" + podA + "/" + containerID("pause") + "\n", 7, false},
		{"an init in the container", "0::/\n", "0::/\n", 7, false},
		{"nothing to read", "0::/\n", "", 7, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := readings{"self/stat": fullStat(c.self, "agent", "S", 0, "1"), "self/cgroup": c.own}
			if c.first != "" {
				source["1/cgroup"] = c.first
			}
			if _, err := NewNode(source); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestNodeTerminatesWithoutItsFirstThread: the kernel tells nothing of a first
// thread that has exited, and the process runs on.
func TestNodeTerminatesWithoutItsFirstThread(t *testing.T) {
	t.Parallel()
	undead := start(t, "ends its first thread")
	awaitZombie(t, undead.Process.Pid)
	pod := onNode(t, podA, map[string]*process{podA + "/trainer": undead})
	order := pod.order(undead, guard.TerminateProcess)
	if order.Container != "trainer" || order.Process.Protected {
		t.Fatalf("the process is %+v", order.Process)
	}
	if out := terminate(t, &Terminator{Processes: pod}, order); out.Result != guard.Terminated {
		t.Errorf("it was not terminated: %+v", out)
	}
}
