package proc

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

// containerTarget is one instance of a container, by its cgroup: when the kubelet
// starts the container again it has another.
type containerTarget struct {
	terminator *Terminator
	cgroup     string
	order      guard.Order
}

func (t *Terminator) acquireContainer(o guard.Order) (guard.Target, guard.Outcome) {
	cgroup, found := t.Table.cgroupOf(o.Container)
	if !found || len(t.Table.members(cgroup)) == 0 {
		return nil, gone("the container has no process")
	}
	if cgroup == t.Table.ours || cgroup == t.Table.init {
		return nil, guard.Outcome{Result: guard.Denied, Reason: "it may not be signaled"}
	}
	return &containerTarget{terminator: t, cgroup: cgroup, order: o}, guard.Outcome{}
}

// Release implements guard.Target.
func (c *containerTarget) Release() {}

// Terminate implements guard.Target. It signals every process of the container,
// and those that they fork meanwhile, until none is left.
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

func (c *containerTarget) members() []stat { return c.terminator.Table.members(c.cgroup) }

// signalAll signals every process of the container once and waits for them to
// exit.
func (c *containerTarget) signalAll(ctx context.Context, sig syscall.Signal, limit time.Duration) error {
	var (
		signaled []*pidfd
		failed   []error
	)
	for _, m := range c.members() {
		fd, err := c.open(m)
		if err != nil || fd == nil {
			continue // it exited in between
		}
		defer fd.release()
		report := func() {}
		if len(signaled) == 0 {
			report = c.terminator.openMessage(c.order, m.pid)
		}
		if err := fd.signal(sig); err != nil && !fd.exited() {
			failed = append(failed, err)
			report()
			continue
		}
		report()
		signaled = append(signaled, fd)
	}
	deadline := time.Now().Add(limit)
	for _, fd := range signaled {
		fd.wait(ctx, time.Until(deadline))
	}
	return errors.Join(failed...)
}

// open opens one member and makes sure that it is the one that was found.
func (c *containerTarget) open(m stat) (*pidfd, error) {
	fd, err := openPidfd(m.pid)
	if err != nil {
		return nil, err
	}
	now, where, cgroup := c.terminator.Table.find(m.pid)
	if fd.exited() || where != sibling || cgroup != c.cgroup || now.start != m.start || m.pid <= 1 || m.pid == c.terminator.Table.self {
		fd.release()
		return nil, nil
	}
	return fd, nil
}
