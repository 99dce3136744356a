package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

// ExitTimeout is how long a process may take to exit after SIGKILL. The driver
// tears its contexts down first.
const ExitTimeout = 10 * time.Second

// Processes are the processes of one pod, as its guard finds them: a Table of the guard's
// own pod, or a Pod of a node.
type Processes interface {
	// Name returns a PID's process, as guard.Namer.
	Name(p guard.Process) guard.Process
	// instance returns the running instance of the container with that name, empty:
	// none, and whether the guard may terminate it.
	instance(container string) (key string, able bool)
	// members returns the live processes of an instance.
	members(key string) []stat
	// find returns a PID's fields, and its container's instance if it may be
	// signaled.
	find(pid int) (s stat, key string)
	// lives reports whether a process has a thread that may live.
	lives(pid int, start uint64) bool
	// openTerminationLog opens the termination log of a process's container.
	openTerminationLog(pid int) (*os.File, error)
}

// Terminator terminates processes of one pod. It implements guard.Terminator.
type Terminator struct {
	Processes Processes
	TermGrace time.Duration // from SIGTERM to SIGKILL; 0: SIGKILL alone
	// Open opens a process; nil: by a pidfd, which only tests do without.
	Open func(pid int) (Handle, error)
	// Message is the text that goes into the termination log of the container of a
	// process that was signaled; nil: nothing does.
	Message func(o guard.Order) string

	messagesOnce sync.Once
	messages     *messages
}

// openMessage opens the file for the reason, before a process is signaled.
func (t *Terminator) openMessage(o guard.Order, pid int) (write func()) {
	t.messagesOnce.Do(func() {
		if t.Message != nil {
			t.messages = newMessages(t.Processes, t.Message)
		}
	})
	return t.messages.open(o, pid)
}

// Acquire implements guard.Terminator. The target is the very process that the
// order's sample listed: the same start time, in the same container, alive after
// both were read again.
func (t *Terminator) Acquire(_ context.Context, o guard.Order) (guard.Target, guard.Outcome) {
	if o.Kind == guard.TerminateContainer {
		return t.acquireContainer(o)
	}
	fd, err := t.open(o.Process.PID)
	if errors.Is(err, os.ErrProcessDone) {
		return nil, gone("it has exited")
	}
	if err != nil && t.Processes.Name(guard.Process{PID: o.Process.PID}).Start != o.Process.Start {
		return nil, gone("its PID belongs to another process, or to a thread, by now")
	}
	if err != nil {
		return nil, guard.Outcome{Result: guard.Denied, Reason: err.Error()}
	}
	if reason := t.verify(fd, o); reason != "" {
		fd.Release()
		return nil, gone(reason)
	}
	return &processTarget{terminator: t, fd: fd, order: o}, guard.Outcome{}
}

func (t *Terminator) open(pid int) (Handle, error) {
	if t.Open != nil {
		return t.Open(pid)
	}
	return openPidfd(pid)
}

// verify returns why the process of the pidfd is not the order's, or an empty
// text when it is.
func (t *Terminator) verify(fd Handle, o guard.Order) string {
	now := t.Processes.Name(guard.Process{PID: o.Process.PID})
	switch {
	case fd.Exited(): // read after Name: the values belong to this process only while it lives
		return "it has exited"
	case now.Start != o.Process.Start:
		return "its PID belongs to another process by now"
	case now.Container != o.Container:
		return "it is in another container by now"
	case now.Protected:
		return "it may not be signaled"
	}
	return ""
}

func gone(reason string) guard.Outcome { return guard.Outcome{Result: guard.Gone, Reason: reason} }

// processTarget is one process, by its pidfd.
type processTarget struct {
	terminator *Terminator
	fd         Handle
	order      guard.Order
}

// Release implements guard.Target.
func (p *processTarget) Release() { p.fd.Release() }

// Terminate implements guard.Target: SIGTERM, the grace period, SIGKILL, and the
// exit observed.
func (p *processTarget) Terminate(ctx context.Context) guard.Outcome {
	report := sync.OnceFunc(p.terminator.openMessage(p.order, p.order.Process.PID))
	defer report()
	if p.terminator.TermGrace > 0 {
		if err := p.fd.Signal(syscall.SIGTERM); err != nil {
			return failed(err)
		}
		report()
		if p.exits(ctx, p.terminator.TermGrace) {
			return guard.Outcome{Result: guard.Terminated, Signal: "SIGTERM"}
		}
	}
	return p.kill(ctx, report)
}

// kill sends SIGKILL alone and observes the exit.
func (p *processTarget) kill(ctx context.Context, report func()) guard.Outcome {
	if err := p.fd.Signal(syscall.SIGKILL); err != nil {
		return failed(err)
	}
	report()
	// A guard that is stopped has sent the signal all the same; it waits a moment
	// longer than ctx, to report the exit.
	if p.exits(context.WithoutCancel(ctx), ExitTimeout) {
		return guard.Outcome{Result: guard.Terminated, Signal: "SIGKILL"}
	}
	return guard.Outcome{Result: guard.TimedOut, Signal: "SIGKILL",
		Reason: fmt.Sprintf("it has not exited %s after SIGKILL; it may hang in the driver", ExitTimeout)}
}

// exits waits for the process to exit. The pidfd does not show it while another
// process traces threads of it that have exited.
func (p *processTarget) exits(ctx context.Context, limit time.Duration) bool {
	const look = 500 * time.Millisecond
	deadline := time.Now().Add(limit)
	for {
		left := time.Until(deadline)
		if p.fd.Wait(ctx, min(left, look)) || !p.terminator.Processes.lives(p.order.Process.PID, p.order.Process.Start) {
			return true
		}
		if left <= look || ctx.Err() != nil {
			return false
		}
	}
}

// failed returns the outcome of a signal that was not sent.
func failed(err error) guard.Outcome {
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return guard.Outcome{Result: guard.Terminated}
	case errors.Is(err, syscall.EPERM):
		return guard.Outcome{Result: guard.Denied,
			Reason: "the guard may not signal it: it must run as the same user, or as UID 0 with the capability KILL"}
	case errors.Is(err, syscall.EACCES):
		return guard.Outcome{Result: guard.Denied, Reason: "a security module of the node denies the guard's signal"}
	}
	return guard.Outcome{Result: guard.Denied, Reason: err.Error()}
}
