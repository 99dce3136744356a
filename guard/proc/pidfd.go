package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pollPeriod is how long one wait on a pidfd lasts before the context is checked
// again. An exit is noticed at once.
const pollPeriod = 100 * time.Millisecond

// Handle is an open handle on one process, so that actions through it can hit no
// other.
type Handle interface {
	// Signal sends the signal to the very process that was opened.
	Signal(sig syscall.Signal) error
	// Exited reports whether the process has exited, reaped or not.
	Exited() bool
	// Wait returns true once the process has exited, or false when the time is up
	// or ctx is done.
	Wait(ctx context.Context, limit time.Duration) bool
	// Release closes the handle.
	Release()
}

// pidfd is a Handle by the kernel. Its PID may be reused; the pidfd may
// not.
type pidfd struct {
	pid     int
	process *os.Process
}

// openPidfd opens the process that has the PID at present. It fails with
// os.ErrProcessDone when there is none, and where the kernel or a sandbox has no
// pidfd: nothing is ever signaled by number.
func openPidfd(pid int) (Handle, error) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	f := &pidfd{pid: pid, process: process}
	err = process.WithHandle(func(uintptr) {})
	if errors.Is(err, os.ErrNoHandle) && errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		err = os.ErrProcessDone
	}
	if err != nil {
		f.Release()
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	return f, nil
}

// Release implements Handle.
func (f *pidfd) Release() { _ = f.process.Release() }

// Signal implements Handle.
func (f *pidfd) Signal(sig syscall.Signal) error {
	if err := f.process.Signal(sig); err != nil {
		return fmt.Errorf("signal process %d: %w", f.pid, err)
	}
	return nil
}

// Exited implements Handle.
func (f *pidfd) Exited() bool {
	exited, err := f.poll(0)
	return exited || err != nil
}

// Wait implements Handle.
func (f *pidfd) Wait(ctx context.Context, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for ctx.Err() == nil {
		left := time.Until(deadline)
		exited, err := f.poll(max(0, min(left, pollPeriod)))
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
func (f *pidfd) poll(limit time.Duration) (exited bool, err error) {
	handleErr := f.process.WithHandle(func(handle uintptr) {
		fds := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
		timeout := unix.NsecToTimespec(int64(limit))
		switch n, pollErr := unix.Ppoll(fds, &timeout, nil); {
		case errors.Is(pollErr, unix.EINTR):
		case pollErr != nil:
			err = fmt.Errorf("wait for process %d: %w", f.pid, pollErr)
		default:
			exited = n > 0 && fds[0].Revents&unix.POLLIN != 0
		}
	})
	if errors.Is(handleErr, os.ErrProcessDone) {
		return true, nil
	}
	return exited, errors.Join(err, handleErr)
}
