package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// waitSlice is how long one wait on a pidfd lasts before the context is asked
// again. An exit ends the wait at once.
const waitSlice = 100 * time.Millisecond

// grip is a hold on one process, by pidfd. Its PID may be reused; the grip may
// not.
type grip struct {
	pid     int
	process *os.Process
}

// seize takes hold of the process that has the PID at present. It fails with
// os.ErrProcessDone when there is none, and where the kernel or a sandbox has no
// pidfd: a signal by number is never the answer.
func seize(pid int) (*grip, error) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("hold process %d: %w", pid, err)
	}
	g := &grip{pid: pid, process: process}
	err = process.WithHandle(func(uintptr) {})
	if errors.Is(err, os.ErrNoHandle) && errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		err = os.ErrProcessDone
	}
	if err != nil {
		g.release()
		return nil, fmt.Errorf("hold process %d: %w", pid, err)
	}
	return g, nil
}

func (g *grip) release() { _ = g.process.Release() }

// signal sends the signal to the very process that is held.
func (g *grip) signal(sig syscall.Signal) error {
	if err := g.process.Signal(sig); err != nil {
		return fmt.Errorf("signal process %d: %w", g.pid, err)
	}
	return nil
}

// exited reports whether the process that is held has exited, reaped or not.
func (g *grip) exited() bool {
	exited, err := g.poll(0)
	return exited || err != nil
}

// wait returns true once the process has exited, or false when the time is up or
// ctx is done.
func (g *grip) wait(ctx context.Context, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for ctx.Err() == nil {
		left := time.Until(deadline)
		exited, err := g.poll(max(0, min(left, waitSlice)))
		if exited || err != nil {
			return exited
		}
		if left <= 0 {
			return false
		}
	}
	return false
}

// poll waits on the pidfd, which becomes readable when the process exits.
func (g *grip) poll(limit time.Duration) (exited bool, err error) {
	handleErr := g.process.WithHandle(func(handle uintptr) {
		fds := struct {
			fd              int32
			events, revents int16
		}{fd: int32(handle), events: pollIn}
		timeout := syscall.NsecToTimespec(int64(limit))
		n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 1, uintptr(unsafe.Pointer(&timeout)), 0, 0, 0)
		switch {
		case errno == syscall.EINTR:
		case errno != 0:
			err = fmt.Errorf("wait for process %d: %w", g.pid, errno)
		default:
			exited = n > 0 && fds.revents&pollIn != 0
		}
	})
	if errors.Is(handleErr, os.ErrProcessDone) {
		return true, nil
	}
	return exited, errors.Join(err, handleErr)
}

// pollIn is POLLIN of poll(2), which package syscall lacks.
const pollIn = 0x1
