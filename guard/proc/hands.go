package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

// exitWait is how long a process may take to exit after SIGKILL. The driver
// tears its contexts down first.
const exitWait = 10 * time.Second

// Hands end processes of the table. They implement guard.Hands.
type Hands struct {
	Table     *Table
	TermGrace time.Duration // from SIGTERM to SIGKILL; 0: SIGKILL alone
	// Before is told of each process before it is signalled; nil: nobody is.
	Before func(o guard.Order, pid int)
}

// Hold implements guard.Hands. What it returns is the very process that the
// order's sample listed: the same start time, in the same container, alive after
// both were read again.
func (h *Hands) Hold(_ context.Context, o guard.Order) (guard.Held, guard.Outcome) {
	if o.Whole {
		return h.holdContainer(o)
	}
	g, err := seize(o.Process.PID)
	if errors.Is(err, os.ErrProcessDone) {
		return nil, gone("it has exited")
	}
	if err != nil && h.Table.Name(guard.Process{PID: o.Process.PID}).Start != o.Process.Start {
		return nil, gone("its PID belongs to another process, or to a thread, by now")
	}
	if err != nil {
		return nil, guard.Outcome{Result: guard.Refused, Reason: err.Error()}
	}
	if reason := h.verify(g, o); reason != "" {
		g.release()
		return nil, gone(reason)
	}
	return &heldProcess{hands: h, grip: g, order: o}, guard.Outcome{}
}

// verify returns why the process that is held is not the order's, or an empty
// text when it is.
func (h *Hands) verify(g *grip, o guard.Order) string {
	now := h.Table.Name(guard.Process{PID: g.pid})
	switch {
	case g.exited():
		return "it has exited"
	case now.Start != o.Process.Start:
		return "its PID belongs to another process by now"
	case now.Container != o.Container:
		return "it is in another container by now"
	case now.Protected:
		return "it may not be signalled"
	}
	return ""
}

func gone(reason string) guard.Outcome { return guard.Outcome{Result: guard.Gone, Reason: reason} }

// heldProcess is one process, held.
type heldProcess struct {
	hands *Hands
	grip  *grip
	order guard.Order
}

// Release implements guard.Held.
func (p *heldProcess) Release() { p.grip.release() }

// End implements guard.Held: SIGTERM, the grace, SIGKILL, and the exit seen.
func (p *heldProcess) End(ctx context.Context) guard.Outcome {
	if p.hands.Before != nil {
		p.hands.Before(p.order, p.grip.pid)
	}
	if p.hands.TermGrace > 0 {
		if err := p.grip.signal(syscall.SIGTERM); err != nil {
			return failed(err)
		}
		if p.grip.wait(ctx, p.hands.TermGrace) {
			return guard.Outcome{Result: guard.Ended, Signal: "SIGTERM"}
		}
	}
	return p.Kill(ctx)
}

// Kill sends SIGKILL alone and sees the exit.
func (p *heldProcess) Kill(ctx context.Context) guard.Outcome {
	if err := p.grip.signal(syscall.SIGKILL); err != nil {
		return failed(err)
	}
	// A guard that is stopped has sent the signal all the same; the exit is
	// waited for a moment longer than ctx, to report it.
	if p.grip.wait(context.WithoutCancel(ctx), exitWait) {
		return guard.Outcome{Result: guard.Ended, Signal: "SIGKILL"}
	}
	return guard.Outcome{Result: guard.Stuck, Signal: "SIGKILL",
		Reason: fmt.Sprintf("it has not exited %s after SIGKILL; it may hang in the driver", exitWait)}
}

// failed says why a signal was not sent.
func failed(err error) guard.Outcome {
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return guard.Outcome{Result: guard.Ended}
	case errors.Is(err, syscall.EPERM):
		return guard.Outcome{Result: guard.Refused,
			Reason: "the guard may not signal it: it must run as the same user, or as UID 0 with the capability KILL"}
	case errors.Is(err, syscall.EACCES):
		return guard.Outcome{Result: guard.Refused, Reason: "a security module of the node refuses the guard's signal"}
	}
	return guard.Outcome{Result: guard.Refused, Reason: err.Error()}
}
