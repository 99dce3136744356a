package proc

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

// inside returns a table in which these processes are in the guard's own
// container, beside the guard, whose program is the test's.
func inside(t *testing.T, processes ...*process) *Table {
	t.Helper()
	containers := map[string]*process{}
	list := "1\n"
	for i, p := range processes {
		containers["own"+strconv.Itoa(i)] = p
		list += strconv.Itoa(p.Process.Pid) + "\n"
	}
	table, _ := pod(t, containers)
	s := table.source.(sessions)
	for session := range s.containers {
		s.containers[session] = "" // see sessions.read
	}
	table.source = ownSessions{s}
	file := filepath.Join(t.TempDir(), "cgroup.procs")
	write(t, file, list)
	table.cgroupProcs = []string{filepath.Join(t.TempDir(), "none"), file}
	return table
}

// ownSessions puts the sessions into the guard's own container.
type ownSessions struct{ sessions }

func (s ownSessions) Read(process, file string) (string, error) {
	if _, known := s.containers[s.session(process)]; known && file == "cgroup" {
		return "0::/\n", nil
	}
	return s.sessions.Read(process, file)
}

// rewritten is a source that reports another command, parent and flags of a process. Go
// cannot fork a process that executes nothing, nor one with a parent outside.
type rewritten struct {
	Source
	pid     string
	command string
	parent  int
	forked  bool
}

func (r *rewritten) Read(process, file string) (string, error) {
	text, err := r.Source.Read(process, file)
	if process != r.pid || file != "stat" || err != nil {
		return text, err
	}
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	fields[1], fields[6] = strconv.Itoa(r.parent), "4194304"
	if r.forked {
		fields[6] = "4194368"
	}
	return r.pid + " (" + r.command + ") " + strings.Join(fields, " ") + "\n", nil
}

func TestStartingProbes(t *testing.T) {
	t.Parallel()
	const runc = "runc:[2:INIT]"
	for name, tc := range map[string]struct {
		rewritten
		patience time.Duration
	}{
		"the runtime has executed nothing yet": {rewritten{command: runc, forked: true}, startingAfter},
		"another runtime's name":               {rewritten{command: "crun", forked: true}, startingAfter},
		"the name alone":                       {rewritten{command: runc}, foreignAfter},
		"the name, below another process":      {rewritten{command: runc, parent: 7}, foreignAfter},
		"forked by another process":            {rewritten{command: runc, parent: 7, forked: true}, foreignAfter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startSleep(t)
			table := inside(t, p)
			tc.Source, tc.pid = table.source, strconv.Itoa(p.Process.Pid)
			table.source, table.self = &tc.rewritten, 1<<22-1
			i := &Intruders{Table: table}
			began := time.Now()
			if ended := append(i.Terminate(began), i.Terminate(began.Add(tc.patience-1))...); len(ended) > 0 {
				t.Fatalf("ended at once: %+v", ended)
			}
			if ended := i.Terminate(began.Add(tc.patience)); len(ended) != 1 || ended[0].Command != tc.command {
				t.Errorf("ended %+v", ended)
			}
		})
	}
}

// A probe has its whole time from when it is executed.
func TestProbesAfterSlowStart(t *testing.T) {
	t.Parallel()
	p := start(t, "obeys")
	table := inside(t, p)
	r := &rewritten{Source: table.source, pid: strconv.Itoa(p.Process.Pid), command: "runc:[2:INIT]", forked: true}
	table.source, table.self = r, 1<<22-1
	i := &Intruders{Table: table}
	began := time.Now()
	i.Terminate(began)
	r.forked = false
	if ended := append(i.Terminate(began.Add(time.Minute)), i.Terminate(began.Add(time.Minute+unknownAfter-1))...); len(ended) > 0 {
		t.Errorf("ended %+v", ended)
	}
	if ended := i.Terminate(began.Add(time.Minute + unknownAfter)); len(ended) != 1 {
		t.Errorf("ended %+v", ended)
	}
}

func TestIntruders(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change   func(*Table, *Intruders)
		patience time.Duration // 0: it is never ended
		lives    bool
	}{
		"the guard's own program, as a probe is": {nil, unknownAfter, false},
		"a program that cannot be read":          {func(table *Table, _ *Intruders) { table.root = t.TempDir() }, unknownAfter, false},
		"a dry run":                              {func(_ *Table, i *Intruders) { i.DryRun = true }, unknownAfter, true},
		"a container that may be another's":      {func(table *Table, _ *Intruders) { table.kubelet = kubeletDir{} }, 0, true},
		"a program that the guard started": {func(table *Table, _ *Intruders) {
			table.self = syscall.Getpid()
		}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, "obeys")
			table := inside(t, p)
			table.self = 1<<22 - 1 // the test has started it
			i := &Intruders{Table: table}
			if tc.change != nil {
				tc.change(table, i)
			}
			began := time.Now()
			ended := i.Terminate(began)
			if tc.patience > 0 {
				ended = append(ended, i.Terminate(began.Add(tc.patience-1))...)
			}
			if len(ended) > 0 {
				t.Fatalf("ended at once: %+v", ended)
			}
			ended = i.Terminate(began.Add(time.Hour))
			if want := tc.patience > 0; want != (len(ended) == 1) {
				t.Errorf("ended %+v", ended)
			}
			if again := i.Terminate(began.Add(2 * time.Hour)); len(again) > 0 {
				t.Errorf("reported again: %+v", again)
			}
			if !tc.lives {
				if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
					t.Errorf("the intruder: %v", err)
				}
			} else if err := p.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("it is gone: %v", err)
			}
		})
	}
}

func startSleep(t *testing.T) *process {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &process{Cmd: cmd}
}

func TestIntrudersOfAnotherProgram(t *testing.T) {
	t.Parallel()
	other := startSleep(t)
	i := &Intruders{Table: inside(t, other)}
	i.Table.self = 1<<22 - 1
	began := time.Now()
	if ended := i.Terminate(began); len(ended) > 0 {
		t.Errorf("ended at once: %+v", ended)
	}
	if ended := i.Terminate(began.Add(foreignAfter)); len(ended) != 1 || ended[0].Command != "sleep" {
		t.Errorf("ended %+v", ended)
	}
}

// An intruder has no slice of its own: what it uses is the pod's.
func TestNameOfAnIntruder(t *testing.T) {
	t.Parallel()
	p := start(t, "obeys")
	table := inside(t, p)
	if got := table.Name(guard.Process{PID: p.Process.Pid}); got.Container != "gpuslice-guard" || !got.Protected {
		t.Errorf("a program that the guard started is %+v", got)
	}
	table.self = 1<<22 - 1
	if got := table.Name(guard.Process{PID: p.Process.Pid}); got.Container != guard.UnnamedContainer || got.Protected {
		t.Errorf("an intruder is %+v", got)
	}
}
