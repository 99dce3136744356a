package proc

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/test/abuse"
)

var reuseTries = flag.Int("reuse.tries", 200, "how often a PID is really made to be reused (needs root)")

// init keeps the main goroutine on the process's first thread, which a tenant may
// end.
func init() { runtime.LockOSThread() }

// TestMain lets the test binary be the tenant too.
func TestMain(m *testing.M) {
	if what := os.Getenv("GPUSLICE_TEST_TENANT"); what != "" {
		tenant(what)
	}
	os.Exit(m.Run())
}

// tenant prints "ready" and then behaves as the test asks, until it is killed.
func tenant(what string) {
	signals := make(chan os.Signal, 16)
	if what != "obeys" && what != "ends its first thread" {
		signal.Notify(signals, syscall.SIGTERM)
	}
	if what == "has many threads" {
		var begun sync.WaitGroup
		for range 24 {
			begun.Add(1)
			go func() {
				runtime.LockOSThread()
				begun.Done()
				select {}
			}()
		}
		begun.Wait()
	}
	fmt.Println("ready")
	if what == "ends its first thread" {
		go func() { time.Sleep(time.Hour) }()
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
	for what == "obeys" {
		time.Sleep(time.Hour)
	}
	for range signals {
		if what == "forks" {
			child := exec.Command("/proc/self/exe")
			child.Env = append(os.Environ(), "GPUSLICE_TEST_TENANT=ignores")
			if err := child.Start(); err != nil {
				os.Exit(3)
			}
		}
		if what == "counts" {
			fmt.Println("signaled")
		}
	}
}

// sessions makes each session of real processes a container of a pod.
type sessions struct {
	files
	containers map[string]string // session -> container
}

func (s sessions) Read(process, file string) (string, error) {
	if process == "self" && file != "stat" {
		return map[string]string{"cgroup": "0::/\n",
			"mountinfo": "40 31 8:1 /pods/0aa1/containers/gpuslice-guard/00 /dev/termination-log rw\n"}[file], nil
	}
	container := s.containers[s.session(process)]
	switch {
	case file == "cgroup" && process == "1":
		return "0::/../pause\n", nil
	case file == "cgroup" && container == "":
		return "0::/../../other/x\n", nil
	case file == "cgroup":
		return "0::/../" + container + "\n", nil
	case file == "mountinfo":
		return "40 31 8:1 /pods/0aa1/containers/" + container + "/00 /dev/termination-log rw\n", nil
	}
	return s.files.Read(process, file)
}

func (s sessions) session(process string) string {
	text, err := s.files.Read(process, "stat")
	if err != nil {
		return ""
	}
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	return fields[3]
}

// process is a real process in a session of its own.
type process struct {
	*exec.Cmd
	out *bufio.Reader
}

func start(t testing.TB, what string) *process {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "GPUSLICE_TEST_TENANT="+what)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, bufio.NewReader(out)}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
	if line, err := p.out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the tenant printed %q: %v", line, err)
	}
	return p
}

// pod returns a table in which each process's session is a container, and the
// order to terminate the first.
func pod(t testing.TB, containers map[string]*process) (*Table, func(name string) guard.Order) {
	t.Helper()
	s := sessions{files: "/proc", containers: map[string]string{}}
	for name, p := range containers {
		s.containers[strconv.Itoa(p.Process.Pid)] = name
	}
	table, err := open("/proc", s)
	if err != nil {
		t.Fatal(err)
	}
	return table, func(name string) guard.Order {
		p := table.Name(guard.Process{PID: containers[name].Process.Pid, UsedBytes: 1, Known: true})
		if p.Container != name || p.Protected {
			t.Fatalf("the tenant is %+v, want container %s", p, name)
		}
		return guard.Order{Kind: guard.TerminateProcess, Container: name, Process: p}
	}
}

func terminate(t testing.TB, h *Terminator, o guard.Order) guard.Outcome {
	t.Helper()
	target, out := h.Acquire(t.Context(), o)
	if target == nil {
		return out
	}
	defer target.Release()
	return target.Terminate(t.Context())
}

func TestTerminateSIGTERM(t *testing.T) {
	t.Parallel()
	table, order := pod(t, map[string]*process{"trainer": start(t, "obeys")})
	out := terminate(t, &Terminator{Processes: table, TermGrace: 5 * time.Second}, order("trainer"))
	if out.Result != guard.Terminated || out.Signal != "SIGTERM" {
		t.Errorf("got %+v", out)
	}
}

// The kernel reports such a process as a zombie, and it runs on.
func TestTerminateWithoutItsFirstThread(t *testing.T) {
	t.Parallel()
	for what, kind := range map[string]guard.OrderKind{"the process": guard.TerminateProcess, "its container": guard.TerminateContainer} {
		p := start(t, "ends its first thread")
		awaitZombie(t, p.Process.Pid)
		table, order := pod(t, map[string]*process{"trainer": p})
		o := order("trainer")
		o.Kind = kind
		if out := terminate(t, &Terminator{Processes: table, TermGrace: 5 * time.Second}, o); out.Result != guard.Terminated ||
			out.Signal != "SIGTERM" {
			t.Errorf("%s: got %+v", what, out)
		}
		if left := table.members("/../trainer"); len(left) != 0 {
			t.Errorf("%s: left alive: %+v", what, left)
		}
	}
}

// awaitZombie waits until the first thread of a process has exited, a moment
// after it said so.
func awaitZombie(t *testing.T, pid int) {
	t.Helper()
	for {
		text, err := files("/proc").Read(strconv.Itoa(pid), "stat")
		if err != nil {
			t.Fatal(err)
		}
		if s, err := parseStat(text); err != nil || s.state == 'Z' {
			return
		}
		runtime.Gosched()
	}
}

func TestTerminateSIGKILLAfterGracePeriod(t *testing.T) {
	t.Parallel()
	table, order := pod(t, map[string]*process{"trainer": start(t, "ignores")})
	began := time.Now()
	out := terminate(t, &Terminator{Processes: table, TermGrace: 300 * time.Millisecond}, order("trainer"))
	if took := time.Since(began); out.Result != guard.Terminated || out.Signal != "SIGKILL" ||
		took < 300*time.Millisecond || took > 5*time.Second {
		t.Errorf("got %+v after %s", out, took)
	}
}

func TestTerminateContainer(t *testing.T) {
	t.Parallel()
	neighbor := start(t, "counts")
	table, order := pod(t, map[string]*process{"trainer": start(t, "forks"), "scorer": neighbor})
	o := order("trainer")
	order("scorer")
	o.Kind = guard.TerminateContainer
	out := terminate(t, &Terminator{Processes: table, TermGrace: 200 * time.Millisecond}, o)
	if out.Result != guard.Terminated || out.Signal != "SIGKILL" {
		t.Errorf("got %+v", out)
	}
	if left := table.members("/../trainer"); len(left) != 0 {
		t.Errorf("left alive: %+v", left)
	}
	unharmed(t, neighbor)
}

// unharmed fails when the process has exited or was signaled.
func unharmed(t testing.TB, p *process) {
	t.Helper()
	if err := p.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the neighbor is gone: %v", err)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	printed, err := io.ReadAll(p.out)
	if err != nil || len(printed) != 0 {
		t.Errorf("the neighbor was signaled: %q, %v", printed, err)
	}
}

// TestTerminateNeverSignalsAReusedPID is the race between sample and signal: the victim
// of the order has exited, and its PID belongs to an unrelated process, in the
// same container, by the time the guard acts.
func TestTerminateNeverSignalsAReusedPID(t *testing.T) {
	t.Parallel()
	unrelated := start(t, "counts")
	table, order := pod(t, map[string]*process{"trainer": unrelated})
	h := &Terminator{Processes: table}
	for try := range 10_000 {
		o := order("trainer")
		o.Process.Start -= uint64(1 + try) // the process that had the PID before
		if out := terminate(t, h, o); out.Result != guard.Gone || out.Signal != "" {
			t.Fatalf("try %d: %+v", try, out)
		}
	}
	unharmed(t, unrelated)
}

// TestTerminateExitedTarget is the same race after Acquire, as
// the kernel has it: what is sent through a pidfd reaches nobody else.
func TestTerminateExitedTarget(t *testing.T) {
	t.Parallel()
	victim := start(t, "obeys")
	table, order := pod(t, map[string]*process{"trainer": victim})
	h := &Terminator{Processes: table, TermGrace: time.Second}
	target, out := h.Acquire(t.Context(), order("trainer"))
	if target == nil {
		t.Fatalf("not acquired: %+v", out)
	}
	defer target.Release()
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	if out := target.Terminate(t.Context()); out.Result != guard.Terminated || out.Signal != "" {
		t.Errorf("got %+v for a process that had exited", out)
	}
}

// TestTerminateReallyReusedPID makes the kernel hand the victim's PID to an
// unrelated process between sample and signal.
func TestTerminateReallyReusedPID(t *testing.T) {
	abuse.Report(t,
		abuse.Attempt{Threat: "A27", Attack: "a PID that is used again", Outcome: abuse.Contained, Words: "the new process is not signaled"})
	if err := os.WriteFile(lastPID, []byte("300"), 0); err != nil {
		t.Skipf("cannot choose the next PID: %v (needs root)", err)
	}
	reused := 0
	for range *reuseTries {
		victim := exec.Command("/bin/sleep", "60")
		victim.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		pid := victim.Process.Pid
		table, order := pod(t, map[string]*process{"trainer": {Cmd: victim}})
		o := order("trainer")
		_ = victim.Process.Kill()
		_ = victim.Wait()
		unrelated := inherit(t, pid, o.Process.Start)
		if unrelated.Process.Pid == pid {
			reused++
		}
		if out := terminate(t, &Terminator{Processes: table}, o); out.Result != guard.Gone || out.Signal != "" {
			t.Errorf("acted on a reused PID: %+v", out)
		}
		if err := unrelated.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the unrelated process is gone: %v", err)
		}
		_ = unrelated.Process.Kill()
		if state := wait(unrelated); state.Signal() != syscall.SIGKILL {
			t.Errorf("the unrelated process exited by %v", state.Signal())
		}
	}
	t.Logf("%d of %d PIDs were reused", reused, *reuseTries)
	if reused < *reuseTries/2 {
		t.Errorf("only %d of %d PIDs were reused: nothing is shown", reused, *reuseTries)
	}
}

// lastPID is where the kernel, or root, writes which PID was given last.
const lastPID = "/proc/sys/kernel/ns_last_pid"

// inherit starts an unrelated process under a PID that was used before. The start
// time that tells the two apart has a resolution of 10 ms. In earnest a PID comes
// round only after all others; here it is handed out at once, so one that came
// within the same tick is killed and another started.
func inherit(t *testing.T, pid int, before uint64) *exec.Cmd {
	t.Helper()
	for {
		if err := os.WriteFile(lastPID, []byte(strconv.Itoa(pid-1)), 0); err != nil {
			t.Fatal(err)
		}
		unrelated := exec.Command("/bin/sleep", "60")
		unrelated.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := unrelated.Start(); err != nil {
			t.Fatal(err)
		}
		if unrelated.Process.Pid != pid || startOf(t, pid) != before {
			return unrelated
		}
		_ = unrelated.Process.Kill()
		_ = unrelated.Wait()
	}
}

func wait(c *exec.Cmd) syscall.WaitStatus {
	_ = c.Wait()
	return c.ProcessState.Sys().(syscall.WaitStatus)
}

func startOf(t *testing.T, pid int) uint64 {
	t.Helper()
	text, err := files("/proc").Read(strconv.Itoa(pid), "stat")
	if err != nil {
		return 0
	}
	s, err := parseStat(text)
	if err != nil {
		t.Fatal(err)
	}
	return s.start
}

func TestNested(t *testing.T) {
	t.Parallel()
	table, order := pod(t, map[string]*process{"trainer": start(t, "obeys")})
	o := order("trainer")
	for _, kind := range []guard.OrderKind{guard.TerminateProcess, guard.TerminateContainer} {
		if o.Kind = kind; table.Nested(o) {
			t.Errorf("%s: a process of the pod's own namespace is nested", kind)
		}
	}
	o.Kind, o.Process.PID = guard.TerminateProcess, 1<<22-1
	if !table.Nested(o) {
		t.Error("a process that cannot be read is not nested")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "GPUSLICE_TEST_TENANT=obeys")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWPID}
	if err := cmd.Start(); err != nil {
		t.Skipf("cannot make a PID namespace: %v (needs root)", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	table, order = pod(t, map[string]*process{"trainer": {Cmd: cmd}})
	o = order("trainer")
	for _, kind := range []guard.OrderKind{guard.TerminateProcess, guard.TerminateContainer} {
		if o.Kind = kind; !table.Nested(o) {
			t.Errorf("%s: a process of another namespace is not nested", kind)
		}
	}
}

func TestAcquireProtected(t *testing.T) {
	t.Parallel()
	outsider := start(t, "counts")
	tenant := start(t, "counts")
	table, order := pod(t, map[string]*process{"trainer": tenant})
	h := &Terminator{Processes: table}
	for name, change := range map[string]func(*guard.Order){
		"PID 1":                        func(o *guard.Order) { o.Process.PID = 1 },
		"the guard itself":             func(o *guard.Order) { o.Process.PID = os.Getpid() },
		"a process outside the pod":    func(o *guard.Order) { o.Process.PID = outsider.Process.Pid },
		"a PID that nobody has":        func(o *guard.Order) { o.Process.PID = 1<<22 - 1 },
		"a process of another contain": func(o *guard.Order) { o.Container = "scorer" },
		"an unknown whole container":   func(o *guard.Order) { o.Container, o.Kind = "scorer", guard.TerminateContainer },
	} {
		o := order("trainer")
		change(&o)
		if out := terminate(t, h, o); out.Result != guard.Gone || out.Reason == "" || out.Signal != "" {
			t.Errorf("%s: got %+v", name, out)
		}
	}
	unharmed(t, outsider)
	unharmed(t, tenant)
}

func TestFailedSignal(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		syscall.EPERM: "capability KILL", syscall.EACCES: "security module", errors.New("else"): "else",
	} {
		if out := failed(fmt.Errorf("signal process 1: %w", err)); out.Result != guard.Denied || !strings.Contains(out.Reason, want) {
			t.Errorf("%v: %+v", err, out)
		}
	}
	if out := failed(os.ErrProcessDone); out.Result != guard.Terminated {
		t.Errorf("a process that has exited: %+v", out)
	}
}

func TestOpenProc(t *testing.T) {
	t.Parallel()
	table, err := Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	if table.self != os.Getpid() {
		t.Errorf("self %d", table.self)
	}
	if p := table.Name(guard.Process{PID: os.Getpid()}); p.Container != "" && !p.Protected {
		t.Errorf("the guard would terminate itself: %+v", p)
	}
	if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(table.self))); err != nil {
		t.Error(err)
	}
}
