package proc

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

// containerTarget is one instance of a container: when the kubelet starts the
// container again it is another.
type containerTarget struct {
	terminator *Terminator
	key        string
	order      guard.Order
}

func (t *Terminator) acquireContainer(o guard.Order) (guard.Target, guard.Outcome) {
	key, able := t.Processes.instance(o.Container)
	if key == "" || len(t.Processes.members(key)) == 0 {
		return nil, gone("the container has no process")
	}
	if !able {
		return nil, guard.Outcome{Result: guard.Denied, Reason: "it may not be signaled"}
	}
	return &containerTarget{terminator: t, key: key, order: o}, guard.Outcome{}
}

// Release implements guard.Target.
func (c *containerTarget) Release() {}

// Terminate implements guard.Target. It signals every process of the container,
// and what they fork meanwhile, until none is left.
func (c *containerTarget) Terminate(ctx context.Context) guard.Outcome {
	if c.terminator.TermGrace > 0 {
		if err := c.signalAll(ctx, syscall.SIGTERM, c.terminator.TermGrace); err != nil {
			return failed(err)
		}
		if len(c.members()) == 0 {
			return guard.Outcome{Result: guard.Terminated, Signal: "SIGTERM"}
		}
	}
	return c.kill(ctx)
}

// kill sends SIGKILL alone, until no process is left.
func (c *containerTarget) kill(ctx context.Context) guard.Outcome {
	deadline := time.Now().Add(ExitTimeout)
	for time.Now().Before(deadline) {
		if err := c.signalAll(context.WithoutCancel(ctx), syscall.SIGKILL, time.Second); err != nil {
			return failed(err)
		}
		if len(c.members()) == 0 {
			return guard.Outcome{Result: guard.Terminated, Signal: "SIGKILL"}
		}
	}
	return guard.Outcome{Result: guard.TimedOut, Signal: "SIGKILL",
		Reason: fmt.Sprintf("%d of its processes have not exited %s after SIGKILL", len(c.members()), ExitTimeout)}
}

func (c *containerTarget) members() []stat { return c.terminator.Processes.members(c.key) }

// signalAll signals every process of the container once and waits for them to
// exit.
func (c *containerTarget) signalAll(ctx context.Context, sig syscall.Signal, limit time.Duration) error {
	var (
		signaled []Handle
		failed   []error
	)
	for _, m := range c.members() {
		fd, err := c.open(m)
		if err != nil || fd == nil {
			continue // it exited in between
		}
		defer fd.Release()
		report := func() {}
		if len(signaled) == 0 {
			report = c.terminator.openMessage(c.order, m.pid)
		}
		if err := fd.Signal(sig); err != nil && !fd.Exited() {
			failed = append(failed, err)
			report()
			continue
		}
		report()
		signaled = append(signaled, fd)
	}
	deadline := time.Now().Add(limit)
	for _, fd := range signaled {
		fd.Wait(ctx, time.Until(deadline))
	}
	return errors.Join(failed...)
}

// open opens one member and makes sure that it is the one that was found.
func (c *containerTarget) open(m stat) (Handle, error) {
	fd, err := c.terminator.open(m.pid)
	if err != nil {
		return nil, err
	}
	now, key := c.terminator.Processes.find(m.pid)
	// The PID may have become another process's before the pidfd was opened.
	if fd.Exited() || key != c.key || now.start != m.start {
		fd.Release()
		return nil, nil
	}
	return fd, nil
}
