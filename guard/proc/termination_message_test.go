package proc

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

func TestOpenTerminationLog(t *testing.T) {
	t.Parallel()
	root, _ := tree(t, "testdata/v2-private.txtar")
	table, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(root, "20/root/my log")
	write(t, log, "of the tenant\n")
	f, err := table.openTerminationLog(20)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("gpuslice terminated python\n"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if want := "of the tenant\ngpuslice terminated python\n"; err != nil || string(text) != want {
		t.Errorf("the message reads %q, %v; want %q", text, err, want)
	}
	if _, err := table.openTerminationLog(7); err == nil {
		t.Error("opened the guard's own")
	}
	outside := filepath.Join(t.TempDir(), "secret")
	write(t, outside, "")
	for what, replace := range map[string]func() error{
		"a symbolic link":      func() error { return os.Symlink(outside, log) },
		"a link within":        func() error { return os.Symlink("other", log) },
		"a FIFO":               func() error { return syscall.Mkfifo(log, 0o666) },
		"a folder":             func() error { return os.Mkdir(log, 0o755) },
		"nothing":              func() error { return nil },
		"a socket's file name": func() error { return syscall.Mknod(log, syscall.S_IFSOCK|0o666, 0) },
	} {
		if err := os.RemoveAll(log); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, "20/root/other"), "")
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		if f, err := table.openTerminationLog(20); err == nil {
			f.Close()
			t.Errorf("opened %s in place of the termination log", what)
		}
	}
}

// messageTo returns a table whose container trainer has its termination log at
// that path.
func messageTo(t *testing.T, victim *process, log string) (*Table, guard.Order) {
	t.Helper()
	table, order := pod(t, map[string]*process{"trainer": victim})
	o := order("trainer")
	id := table.identities["/../trainer"]
	id.path = log
	table.identities["/../trainer"] = id
	return table, o
}

func TestTerminateWritesTheReason(t *testing.T) {
	t.Parallel()
	for what, kind := range map[string]guard.OrderKind{"a process": guard.TerminateProcess, "a container": guard.TerminateContainer} {
		log := filepath.Join(t.TempDir(), "termination-log")
		write(t, log, "")
		table, o := messageTo(t, start(t, "obeys"), log)
		o.Kind = kind
		h := &Terminator{Processes: table, TermGrace: 5 * time.Second, Message: guard.Order.TenantMessage}
		if out := terminate(t, h, o); out.Result != guard.Terminated {
			t.Errorf("%s: got %+v", what, out)
		}
		h.messages.busy <- struct{}{} // the writer is done
		if text, err := os.ReadFile(log); err != nil || !strings.HasPrefix(string(text), "gpuslice terminated ") {
			t.Errorf("%s: the termination log reads %q, %v", what, text, err)
		}
	}
}

// A tenant may put anything in the place of its termination log, and a file
// system that never answers below it.
func TestTerminateDoesNotWaitForTheTerminationLog(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	table, o := messageTo(t, start(t, "obeys"), fifo)
	h := &Terminator{Processes: table, TermGrace: 5 * time.Second, Message: guard.Order.TenantMessage}
	began := time.Now()
	if out := terminate(t, h, o); out.Result != guard.Terminated || out.Signal != "SIGTERM" {
		t.Errorf("got %+v", out)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("terminated after %s", took)
	}
}

// A writer that hangs costs the next termination nothing.
func TestTerminateBesideAMessageThatHangs(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "termination-log")
	write(t, log, "")
	table, o := messageTo(t, start(t, "obeys"), log)
	h := &Terminator{Processes: table, TermGrace: 5 * time.Second, Message: guard.Order.TenantMessage}
	h.openMessage(o, 1)() // makes the writer
	h.messages.busy <- struct{}{}
	if out := terminate(t, h, o); out.Result != guard.Terminated {
		t.Errorf("got %+v", out)
	}
	if text, err := os.ReadFile(log); err != nil || len(text) != 0 {
		t.Errorf("the termination log reads %q, %v", text, err)
	}
}
