package proc

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/test/undead"
)

// crowd is a /proc of one container, a process of which, 20, has so many threads that
// have exited, and then one that lives if last is set. Its first thread has exited.
type crowd struct {
	zombies int
	last    bool
	parent  int
	reads   int
}

func (c *crowd) Read(process, file string) (string, error) {
	c.reads++
	pid, task, _ := strings.Cut(process, "/task/")
	tid, _ := strconv.Atoi(task)
	switch {
	case process == "self" && file == "stat":
		return fullStat(900, "agent", "S", 1, "1"), nil
	case process == "self":
		return "0::/\n", nil
	case process == "1" && file == "stat":
		return fullStat(1, "systemd", "S", 0, "1"), nil
	case process == "1":
		return "0::/../../../init.scope\n", nil
	case file == "cgroup" && (process == "20" || tid > 0 && tid <= 20+c.zombies):
		return "0::/\n", nil // as of a process that has exited
	case file == "cgroup":
		return "0::/../../pod" + podA + "/" + containerID("trainer") + "\n", nil
	case pid == "10":
		return fullStat(10, "sh", "S", 1, "5"), nil
	case pid != "20":
		return "", os.ErrNotExist
	case tid > 20+c.zombies && c.last:
		return fullStat(tid, "python", "S", c.parent, "7"), nil
	}
	return fullStat(max(tid, 20), "python", "Z", c.parent, "7"), nil
}

func (c *crowd) Threads(int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for tid := 20; tid <= 20+c.zombies+1; tid++ {
			if (tid <= 20+c.zombies || c.last) && !yield(tid) {
				return
			}
		}
	}
}

func (c *crowd) PIDs() []int { return []int{1, 10, 20} }
func (c *crowd) Now() uint64 { return 100 }

func TestThreads(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		crowd       crowd
		dir         string
		unread      bool
		pod, exited bool // is it found to be of the pod, or to have exited
		again       int  // files that are read when it is asked for again
	}{
		"the 22nd lives":                      {crowd{zombies: 20, last: true, parent: 10}, "20/task/41", false, true, false, 22},
		"the 200th lives":                     {crowd{zombies: 200, last: true, parent: 10}, "20/task/221", false, true, false, 2},
		"none lives":                          {crowd{zombies: 20, parent: 10}, "", false, false, true, 21},
		"none of 200 lives":                   {crowd{zombies: 200, parent: 10}, "", false, false, true, 1},
		"one of too many, beside its parent":  {crowd{zombies: mostThreads, last: true, parent: 10}, "10", true, true, false, 2},
		"one of too many, with none in a pod": {crowd{zombies: mostThreads, last: true, parent: 1}, "1", true, false, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, err := NewNode(&tc.crowd)
			if err != nil {
				t.Fatal(err)
			}
			s, _ := n.stat(20)
			if s.dir != tc.dir || s.unread != tc.unread || s.exited() != tc.exited {
				t.Errorf("read at %q, unread %v, exited %v", s.dir, s.unread, s.exited())
			}
			p, m := n.Name(guard.Process{PID: 20})
			if got := m.PodUID == podA; got != tc.pod || p.Unread != (tc.unread && !tc.pod) {
				t.Errorf("it is in the pod: %v, unread %v", got, p.Unread)
			}
			if got := n.lives(20, 7); got == tc.exited {
				t.Errorf("it lives: %v", got)
			}
			if n.lives(20, 8) {
				t.Error("another with its PID lives")
			}
			tc.crowd.reads = 0
			if _, _ = n.stat(20); tc.crowd.reads != tc.again {
				t.Errorf("asked again it read %d files, want %d", tc.crowd.reads, tc.again)
			}
		})
	}
}

// A process that was found in a container is there, whatever it does to its threads.
func TestNodeRemembersMembers(t *testing.T) {
	t.Parallel()
	c := &crowd{zombies: 20, last: true, parent: 1}
	n, err := NewNode(c)
	if err != nil {
		t.Fatal(err)
	}
	n.Name(guard.Process{PID: 20})
	c.zombies = 2 * mostThreads
	if p, m := n.Name(guard.Process{PID: 20}); m.PodUID != podA || p.Unread {
		t.Errorf("it is in %+v, unread %v", m, p.Unread)
	}
}

// undeadThreads starts a process with more threads than a guard reads of at once, of
// which all but the last have exited, and are traced.
func undeadThreads(t *testing.T) *process {
	t.Helper()
	p := start(t, "has many threads")
	done, traced := make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread() // the tracer: it ends with the goroutine
		traced <- undead.EndThreads(p.Process.Pid)
		<-done
	}()
	t.Cleanup(func() { close(done) })
	if err := <-traced; errors.Is(err, errors.ErrUnsupported) || errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for zombies := 0; zombies < 20; {
		zombies = 0
		for tid := range files("/proc").Threads(p.Process.Pid) {
			if s, err := readStat(files("/proc"), fmt.Sprintf("%d/task/%d", p.Process.Pid, tid)); err == nil && s.ended() {
				zombies++
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d zombies", zombies)
		}
	}
	return p
}

// TestNodeTerminatesTraced: the process is found, and that it ends is seen though the
// kernel does not tell by its pidfd.
func TestNodeTerminatesTraced(t *testing.T) {
	t.Parallel()
	p := undeadThreads(t)
	pod := onNode(t, podA, map[string]*process{podA + "/trainer": p})
	order := pod.order(p, guard.TerminateProcess)
	if order.Container != "trainer" || order.Process.Protected {
		t.Fatalf("the process is %+v", order.Process)
	}
	began := time.Now()
	out := terminate(t, &Terminator{Processes: pod}, order)
	if out.Result != guard.Terminated || time.Since(began) > 5*time.Second {
		t.Errorf("after %s: %+v", time.Since(began), out)
	}
}

func TestTerminatesTraced(t *testing.T) {
	t.Parallel()
	p := undeadThreads(t)
	table, order := pod(t, map[string]*process{"trainer": p})
	if out := terminate(t, &Terminator{Processes: table}, order("trainer")); out.Result != guard.Terminated {
		t.Errorf("%+v", out)
	}
}
