package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuslice/gpuslice/guard"
)

// openTimeout is how long a termination waits for a tenant's termination log: a
// tenant may have put it on a file system that never answers.
const openTimeout = 200 * time.Millisecond

// errNotRegular is returned for a termination log that is something else by now.
var errNotRegular = errors.New("it is no regular file")

// messages writes reasons into tenants' termination logs, one at a time, and
// beside the termination: a tenant can delay no signal, and costs one thread at
// most.
type messages struct {
	processes Processes
	text      func(guard.Order) string
	busy      chan struct{}
}

func newMessages(p Processes, text func(guard.Order) string) *messages {
	return &messages{processes: p, text: text, busy: make(chan struct{}, 1)}
}

// open opens the termination log of a process that is about to be signaled, and
// returns the function that writes the reason, to be called after the signal. When
// it cannot be opened at once, that function does nothing.
func (m *messages) open(o guard.Order, pid int) (write func()) {
	nothing := func() {}
	if m == nil {
		return nothing
	}
	select {
	case m.busy <- struct{}{}:
	default:
		return nothing // the file of an earlier one has not answered
	}
	opened, signaled := make(chan struct{}), make(chan struct{})
	go func() {
		defer func() { <-m.busy }()
		f, err := m.processes.openTerminationLog(pid)
		close(opened)
		if err != nil {
			return
		}
		defer f.Close()
		<-signaled
		_, _ = f.WriteString(m.text(o) + "\n")
	}()
	select {
	case <-opened:
	case <-time.After(openTimeout):
	}
	return func() { close(signaled) }
}

// openTerminationLog opens the termination log of the process's container, where
// the guard may write it: it must run as the same user, and with no fewer
// capabilities. The kubelet shows the text once the container has terminated.
func (t *Table) openTerminationLog(pid int) (*os.File, error) {
	s, where, key := t.locate(pid)
	if where != sibling {
		return nil, fmt.Errorf("open the termination log of process %d: it is no process of the pod's tenants", pid)
	}
	path := t.identify(key, s).path
	if path == "" {
		return nil, fmt.Errorf("open the termination log of process %d: %w", pid, errNoTerminationLog)
	}
	f, err := openRegular(filepath.Join(t.root, strconv.Itoa(pid), "root"), strings.TrimPrefix(path, "/"))
	if err != nil {
		return nil, fmt.Errorf("open the termination log of process %d: %w", pid, err)
	}
	return f, nil
}

// openRegular opens a regular file below a root for appending. Its type is known
// before it is opened: opening a FIFO may wait for ever, and opening a device may do
// anything.
func openRegular(below, path string) (*os.File, error) {
	root, err := os.OpenRoot(below) // a tenant's symbolic links lead nowhere else
	if err != nil {
		return nil, err
	}
	defer root.Close()
	at, err := root.OpenFile(path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	info, err := at.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", at.Fd()), os.O_WRONLY|os.O_APPEND|unix.O_NONBLOCK, 0)
}
