package proc

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

// heldContainer is one instance of a container, held by its cgroup: when the
// kubelet starts the container again it has another.
type heldContainer struct {
	hands *Hands
	key   string
	order guard.Order
}

func (h *Hands) holdContainer(o guard.Order) (guard.Held, guard.Outcome) {
	key, found := h.Table.containerKey(o.Container)
	if !found || len(h.Table.members(key)) == 0 {
		return nil, gone("the container has no process")
	}
	if key == h.Table.ours || key == h.Table.init {
		return nil, guard.Outcome{Result: guard.Refused, Reason: "it may not be signalled"}
	}
	return &heldContainer{hands: h, key: key, order: o}, guard.Outcome{}
}

// Release implements guard.Held.
func (c *heldContainer) Release() {}

// End implements guard.Held. It signals every process of the container, and
// those that they fork meanwhile, until none is left.
func (c *heldContainer) End(ctx context.Context) guard.Outcome {
	if c.hands.TermGrace > 0 {
		if err := c.sweep(ctx, syscall.SIGTERM, c.hands.TermGrace); err != nil {
			return failed(err)
		}
		if len(c.hands.Table.members(c.key)) == 0 {
			return guard.Outcome{Result: guard.Ended, Signal: "SIGTERM"}
		}
	}
	return c.Kill(ctx)
}

// Kill sends SIGKILL alone, until no process is left.
func (c *heldContainer) Kill(ctx context.Context) guard.Outcome {
	deadline := time.Now().Add(exitWait)
	for time.Now().Before(deadline) {
		if err := c.sweep(context.WithoutCancel(ctx), syscall.SIGKILL, time.Second); err != nil {
			return failed(err)
		}
		if len(c.hands.Table.members(c.key)) == 0 {
			return guard.Outcome{Result: guard.Ended, Signal: "SIGKILL"}
		}
	}
	return guard.Outcome{Result: guard.Stuck, Signal: "SIGKILL",
		Reason: fmt.Sprintf("%d of its processes have not exited %s after SIGKILL", len(c.hands.Table.members(c.key)), exitWait)}
}

// sweep signals every process of the container once and waits for them to exit.
func (c *heldContainer) sweep(ctx context.Context, sig syscall.Signal, limit time.Duration) error {
	var (
		grips  []*grip
		failed []error
	)
	for _, m := range c.hands.Table.members(c.key) {
		g, err := c.take(m)
		if err != nil || g == nil {
			continue // it exited in between
		}
		defer g.release()
		if c.hands.Before != nil && len(grips) == 0 {
			c.hands.Before(c.order, m.pid)
		}
		if err := g.signal(sig); err != nil && !g.exited() {
			failed = append(failed, err)
			continue
		}
		grips = append(grips, g)
	}
	deadline := time.Now().Add(limit)
	for _, g := range grips {
		g.wait(ctx, time.Until(deadline))
	}
	return errors.Join(failed...)
}

// take holds one member and makes sure that it is the one that was found.
func (c *heldContainer) take(m stat) (*grip, error) {
	g, err := seize(m.pid)
	if err != nil {
		return nil, err
	}
	now, where, key := c.hands.Table.find(m.pid)
	if g.exited() || where != sibling || key != c.key || now.start != m.start || m.pid <= 1 || m.pid == c.hands.Table.self {
		g.release()
		return nil, nil
	}
	return g, nil
}
