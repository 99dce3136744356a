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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

var reuseTries = flag.Int("reuse.tries", 200, "how often a PID is really made to be reused (needs root)")

// TestMain lets the test binary be the tenant too.
func TestMain(m *testing.M) {
	if what := os.Getenv("GPUSLICE_TEST_TENANT"); what != "" {
		tenant(what)
	}
	os.Exit(m.Run())
}

// tenant says "ready" and then is what the test asks for, until it is ended.
func tenant(what string) {
	signals := make(chan os.Signal, 16)
	if what != "obeys" {
		signal.Notify(signals, syscall.SIGTERM)
	}
	fmt.Println("ready")
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
			fmt.Println("signalled")
		}
	}
}

// sessions makes each session of real processes a container of a pod.
type sessions struct {
	files
	containers map[string]string // session -> container
}

func (s sessions) read(process, file string) (string, error) {
	if process == "self" && file != "stat" {
		return map[string]string{"cgroup": "0::/\n"}[file], nil
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
	return s.files.read(process, file)
}

func (s sessions) session(process string) string {
	text, err := s.files.read(process, "stat")
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
		t.Fatalf("the tenant said %q: %v", line, err)
	}
	return p
}

// pod returns a table in which each process's session is a container, and the
// order to end the first.
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
		return guard.Order{Container: name, Process: p}
	}
}

func end(t testing.TB, h *Hands, o guard.Order) guard.Outcome {
	t.Helper()
	held, out := h.Hold(t.Context(), o)
	if held == nil {
		return out
	}
	defer held.Release()
	return held.End(t.Context())
}

func TestATenantThatObeysExitsOnSIGTERM(t *testing.T) {
	t.Parallel()
	table, order := pod(t, map[string]*process{"trainer": start(t, "obeys")})
	var told []int
	h := &Hands{Table: table, TermGrace: 5 * time.Second, Before: func(_ guard.Order, pid int) { told = append(told, pid) }}
	out := end(t, h, order("trainer"))
	if out.Result != guard.Ended || out.Signal != "SIGTERM" || len(told) != 1 {
		t.Errorf("got %+v, told of %v", out, told)
	}
}

func TestATenantThatIgnoresSIGTERMIsKilledAfterTheGrace(t *testing.T) {
	t.Parallel()
	table, order := pod(t, map[string]*process{"trainer": start(t, "ignores")})
	began := time.Now()
	out := end(t, &Hands{Table: table, TermGrace: 300 * time.Millisecond}, order("trainer"))
	if took := time.Since(began); out.Result != guard.Ended || out.Signal != "SIGKILL" || took < 300*time.Millisecond || took > 5*time.Second {
		t.Errorf("got %+v after %s", out, took)
	}
}

func TestAWholeContainerGoesWithWhatItForksAndNoOther(t *testing.T) {
	t.Parallel()
	neighbour := start(t, "counts")
	table, order := pod(t, map[string]*process{"trainer": start(t, "forks"), "scorer": neighbour})
	o := order("trainer")
	order("scorer")
	o.Whole = true
	out := end(t, &Hands{Table: table, TermGrace: 200 * time.Millisecond}, o)
	if out.Result != guard.Ended || out.Signal != "SIGKILL" {
		t.Errorf("got %+v", out)
	}
	if left := table.members("/../trainer"); len(left) != 0 {
		t.Errorf("left alive: %+v", left)
	}
	unharmed(t, neighbour)
}

// unharmed fails when the process has exited or was signalled.
func unharmed(t testing.TB, p *process) {
	t.Helper()
	if err := p.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the neighbour is gone: %v", err)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(p.out)
	if err != nil || len(said) != 0 {
		t.Errorf("the neighbour was signalled: %q, %v", said, err)
	}
}

// TestAReusedPIDIsNeverSignalled is the race between look and act: the victim
// of the order has exited, and its PID belongs to an innocent process, in the
// same container, by the time the guard acts.
func TestAReusedPIDIsNeverSignalled(t *testing.T) {
	t.Parallel()
	innocent := start(t, "counts")
	table, order := pod(t, map[string]*process{"trainer": innocent})
	h := &Hands{Table: table}
	for try := range 10_000 {
		o := order("trainer")
		o.Process.Start -= uint64(1 + try) // the process that had the PID before
		if out := end(t, h, o); out.Result != guard.Gone || out.Signal != "" {
			t.Fatalf("try %d: %+v", try, out)
		}
	}
	unharmed(t, innocent)
}

// TestAHeldProcessThatExitsTakesItsPIDAlong is the same race after the hold, as
// the kernel has it: what is sent through a pidfd reaches nobody else.
func TestAHeldProcessThatExitsTakesItsPIDAlong(t *testing.T) {
	t.Parallel()
	victim := start(t, "obeys")
	table, order := pod(t, map[string]*process{"trainer": victim})
	h := &Hands{Table: table, TermGrace: time.Second}
	held, out := h.Hold(t.Context(), order("trainer"))
	if held == nil {
		t.Fatalf("not held: %+v", out)
	}
	defer held.Release()
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	if out := held.End(t.Context()); out.Result != guard.Ended || out.Signal != "" {
		t.Errorf("got %+v for a process that had exited", out)
	}
}

// TestAPIDThatIsReallyReused makes the kernel hand the victim's PID to an
// innocent process between look and act.
func TestAPIDThatIsReallyReused(t *testing.T) {
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
		innocent := inherit(t, pid, o.Process.Start)
		if innocent.Process.Pid == pid {
			reused++
		}
		if out := end(t, &Hands{Table: table}, o); out.Result != guard.Gone || out.Signal != "" {
			t.Errorf("acted on a reused PID: %+v", out)
		}
		if err := innocent.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the innocent process is gone: %v", err)
		}
		_ = innocent.Process.Kill()
		if state := wait(innocent); state.Signal() != syscall.SIGKILL {
			t.Errorf("the innocent process ended by %v", state.Signal())
		}
	}
	t.Logf("%d of %d PIDs were reused", reused, *reuseTries)
	if reused < *reuseTries/2 {
		t.Errorf("only %d of %d PIDs were reused: nothing is shown", reused, *reuseTries)
	}
}

// lastPID is where the kernel, or root, says which PID was given last.
const lastPID = "/proc/sys/kernel/ns_last_pid"

// inherit starts an innocent process under a PID that was used before. The start
// time that tells the two apart has a resolution of 10 ms. In earnest a PID comes
// round only after all others; here it is handed out at once, so one that came
// within the same tick is ended and another started.
func inherit(t *testing.T, pid int, before uint64) *exec.Cmd {
	t.Helper()
	for {
		if err := os.WriteFile(lastPID, []byte(strconv.Itoa(pid-1)), 0); err != nil {
			t.Fatal(err)
		}
		innocent := exec.Command("/bin/sleep", "60")
		innocent.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := innocent.Start(); err != nil {
			t.Fatal(err)
		}
		if innocent.Process.Pid != pid || startOf(t, pid) != before {
			return innocent
		}
		_ = innocent.Process.Kill()
		_ = innocent.Wait()
	}
}

func wait(c *exec.Cmd) syscall.WaitStatus {
	_ = c.Wait()
	return c.ProcessState.Sys().(syscall.WaitStatus)
}

func startOf(t *testing.T, pid int) uint64 {
	t.Helper()
	text, err := files("/proc").read(strconv.Itoa(pid), "stat")
	if err != nil {
		return 0
	}
	s, err := parseStat(text)
	if err != nil {
		t.Fatal(err)
	}
	return s.start
}

func TestWhatMayNotBeSignalledIsNotHeld(t *testing.T) {
	t.Parallel()
	stranger := start(t, "counts")
	tenant := start(t, "counts")
	table, order := pod(t, map[string]*process{"trainer": tenant})
	h := &Hands{Table: table}
	for name, change := range map[string]func(*guard.Order){
		"PID 1":                        func(o *guard.Order) { o.Process.PID = 1 },
		"the guard itself":             func(o *guard.Order) { o.Process.PID = os.Getpid() },
		"a process outside the pod":    func(o *guard.Order) { o.Process.PID = stranger.Process.Pid },
		"a PID that nobody has":        func(o *guard.Order) { o.Process.PID = 1<<22 - 1 },
		"a process of another contain": func(o *guard.Order) { o.Container = "scorer" },
		"an unknown whole container":   func(o *guard.Order) { o.Container, o.Whole = "scorer", true },
	} {
		o := order("trainer")
		change(&o)
		if out := end(t, h, o); out.Result != guard.Gone || out.Reason == "" || out.Signal != "" {
			t.Errorf("%s: got %+v", name, out)
		}
	}
	unharmed(t, stranger)
	unharmed(t, tenant)
}

func TestARefusedSignalSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		syscall.EPERM: "capability KILL", syscall.EACCES: "security module", errors.New("else"): "else",
	} {
		if out := failed(fmt.Errorf("signal process 1: %w", err)); out.Result != guard.Refused || !strings.Contains(out.Reason, want) {
			t.Errorf("%v: %+v", err, out)
		}
	}
	if out := failed(os.ErrProcessDone); out.Result != guard.Ended {
		t.Errorf("a process that has exited: %+v", out)
	}
}

func TestTheTestsOwnRootIsReadLikeProc(t *testing.T) {
	t.Parallel()
	table, err := Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	if table.Self() != os.Getpid() || !table.Own(os.Getpid()) {
		t.Errorf("self %d, own %v", table.Self(), table.Own(os.Getpid()))
	}
	if p := table.Name(guard.Process{PID: os.Getpid()}); p.Container != "" && !p.Protected {
		t.Errorf("the guard would end itself: %+v", p)
	}
	if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(table.Self()))); err != nil {
		t.Error(err)
	}
}
