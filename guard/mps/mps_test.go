package mps

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// daemon is the stand-in for NVIDIA's program, with these clients.
func daemon(t *testing.T, clients string) Control {
	t.Helper()
	program, err := filepath.Abs("testdata/" + Program)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, dir, "clients", clients)
	return Control{Program: program, PipeDirectory: dir}
}

func put(t *testing.T, dir, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func sent(t *testing.T, c Control) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.PipeDirectory, "sent"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// signals is the terminator that signals: it notes when it does.
type signals struct {
	control Control
	signals []string
	t       *testing.T
}

func (s *signals) Acquire(context.Context, guard.Order) (guard.Target, guard.Outcome) {
	return s, guard.Outcome{}
}
func (s *signals) Release() {}
func (s *signals) Terminate(context.Context) guard.Outcome {
	s.signals = append(s.signals, sent(s.t, s.control))
	return guard.Outcome{Result: guard.Terminated, Signal: "SIGKILL"}
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	const one = "1024 900 4026531836 ./train\n2048 900 4026530000 ./neighbor\n"
	const two = one + "1025 900 4026531836 ./train\n"
	order := guard.Order{Container: "trainer", MPS: true, Alone: true, Process: guard.Process{PID: 6, MPS: true}}
	container := order
	container.Kind = guard.TerminateContainer
	crowd := order
	crowd.Alone = false
	nested := order
	nested.Process.PID = 7
	plain := order
	plain.MPS = false
	for name, tc := range map[string]struct {
		clients  string
		order    guard.Order
		fallback limits.MPSTermination
		spoil    string // a file that changes the daemon
		want     guard.Result
		before   string // what the daemon had been sent when the signal came
		reason   string
	}{
		"the pod's only client": {one, order, limits.MPSTerminationObserve, "", guard.Terminated, "ps\nterminate_client 900 1024\n", ""},
		"a client listed on two devices is one": {one + "1024 900 4026531836 ./train\n", order,
			limits.MPSTerminationObserve, "", guard.Terminated,
			"ps\nterminate_client 900 1024\n", ""},
		"two clients, one to go": {two, order, limits.MPSTerminationObserve, "", guard.Skipped, "", "2 clients of this pod"},
		"two clients, both to go": {two, container, limits.MPSTerminationObserve, "", guard.Terminated,
			"ps\nterminate_client 900 1024\nterminate_client 900 1025\n", ""},
		"a process beside it": {one, crowd, limits.MPSTerminationObserve, "", guard.Skipped, "", "other processes on its devices"},
		"one that evaded the daemon": {"2048 900 4026530000 ./neighbor\n", order,
			limits.MPSTerminationObserve, "", guard.Terminated, "ps\n", ""},
		"one that may be a client elsewhere": {"2048 900 4026530000 ./neighbor\n", nested, limits.MPSTerminationObserve, "",
			guard.Skipped, "", "under another PID namespace"},
		"a daemon that leaves clients out": {one, order, limits.MPSTerminationObserve, "mute", guard.Skipped, "", "answered nothing"},
		"a dead daemon": {one, order, limits.MPSTerminationObserve, "dead",
			guard.Skipped, "", "Cannot find MPS control daemon"},
		"a daemon that does not answer":      {one, order, limits.MPSTerminationObserve, "slow", guard.Skipped, "", "no answer within"},
		"a dead daemon, where policy signal": {one, order, limits.MPSTerminationSignal, "dead", guard.Terminated, "", ""},
		"two clients, where policy signals":  {two, order, limits.MPSTerminationSignal, "", guard.Terminated, "ps\n", ""},
		"a process that is no client":        {one, plain, limits.MPSTerminationObserve, "", guard.Terminated, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			control := daemon(t, tc.clients)
			control.Limit = 2 * time.Second
			if tc.spoil != "" {
				put(t, control.PipeDirectory, tc.spoil, "")
				control.Limit = 200 * time.Millisecond
			}
			next := &signals{control: control, t: t}
			h := &Terminator{Daemon: control, Namespace: 4026531836, Fallback: tc.fallback, Next: next,
				Nested: func(o guard.Order) bool { return o.Process.PID == 7 }}
			target, _ := h.Acquire(t.Context(), tc.order)
			out := target.Terminate(t.Context())
			checkTermination(t, next, out, tc.want, tc.reason, tc.before)
		})
	}
}

func TestAlive(t *testing.T) {
	t.Parallel()
	control := daemon(t, "")
	for name, c := range map[string]Control{
		"no pipe directory given": {Program: control.Program},
		"no pipe directory there": {Program: control.Program, PipeDirectory: "/nowhere"},
		"no program there":        {Program: "/nowhere/" + Program, PipeDirectory: control.PipeDirectory},
	} {
		if err := c.Alive(t.Context()); !errors.Is(err, ErrOutOfReach) {
			t.Errorf("%s: got %v, want ErrOutOfReach", name, err)
		}
	}
	if err := control.Alive(t.Context()); err != nil {
		t.Errorf("a daemon that lives: %v", err)
	}
	put(t, control.PipeDirectory, "dead", "")
	if err := control.Alive(t.Context()); err == nil || errors.Is(err, ErrOutOfReach) {
		t.Errorf("a dead daemon: %v", err)
	}
}

func TestParseClients(t *testing.T) {
	t.Parallel()
	got, err := parseClients("PID ID SERVER DEVICE NAMESPACE COMMAND\n9741 0 6472 GPU-cb1213a3-d6a4-be7f 4026531836 ./nbody -n 5\n\n")
	want := []Client{{9741, 6472, 4026531836, "./nbody -n 5"}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, text := range []string{"nonsense\n", "PID SERVER NAMESPACE\nx 1 2\n", "PID SERVER NAMESPACE\n1 x 2\n",
		"PID SERVER NAMESPACE\n1 2 x\n", "PID SERVER NAMESPACE\n1\n"} {
		if got, err := parseClients(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func TestTerminateClientFails(t *testing.T) {
	t.Parallel()
	control := daemon(t, "1024 900 4026531836 ./train\n")
	if err := control.Terminate(t.Context(), Client{PID: 1, Server: 900}); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("got %v", err)
	}
}

func TestNamespace(t *testing.T) {
	t.Parallel()
	got, err := Namespace("/proc")
	info, statErr := os.Stat("/proc/self/ns/pid")
	if err != nil || statErr != nil || got == 0 {
		t.Fatalf("got %d, %v, %v of %v", got, err, statErr, info)
	}
	if _, err := Namespace(t.TempDir()); err == nil {
		t.Error("a namespace was read where there is none")
	}
}

func FuzzParseClients(f *testing.F) {
	f.Add("PID ID SERVER DEVICE NAMESPACE COMMAND\n1 0 2 GPU 3 a\n")
	f.Fuzz(func(t *testing.T, text string) {
		clients, err := parseClients(text)
		if err != nil && clients != nil {
			t.Errorf("%q gave clients and an error", text)
		}
	})
}

// checkTermination compares the outcome and what was done with what is wanted. before is what the daemon had been sent when the
// signal came.
func checkTermination(t *testing.T, next *signals, out guard.Outcome, want guard.Result, reason, before string) {
	t.Helper()
	if out.Result != want || !strings.Contains(out.Reason, reason) {
		t.Errorf("got %+v, want %s with %q", out, want, reason)
	}
	if signaled := want == guard.Terminated; signaled != (len(next.signals) == 1) {
		t.Fatalf("signaled %d times", len(next.signals))
	}
	if want == guard.Terminated && next.signals[0] != before {
		t.Errorf("when the signal came the daemon had been sent %q, want %q", next.signals[0], before)
	}
	if strings.Contains(sent(t, next.control), "2048") {
		t.Error("a neighbor's client was terminated")
	}
}
