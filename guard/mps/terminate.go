package mps

import (
	"context"
	"fmt"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// Daemon is the part of an MPS daemon that a Terminator needs.
type Daemon interface {
	// Clients returns every client, or the reason why the daemon does not list
	// them.
	Clients(ctx context.Context) ([]Client, error)
	// Terminate destroys a client's contexts and leaves the others intact.
	Terminate(ctx context.Context, client Client) error
}

// Terminator terminates MPS clients through the daemon before Next signals them. It
// implements guard.Terminator; a process that is no MPS client is left to Next.
type Terminator struct {
	Daemon    Daemon
	Namespace uint64 // inode of the pod's PID namespace
	// Nested reports whether a process that the order names may live in a PID
	// namespace of its own, so that the daemon knows it under another inode.
	Nested   func(o guard.Order) bool
	Fallback limits.MPSTermination
	Next     guard.Terminator
}

// Acquire implements guard.Terminator.
func (t *Terminator) Acquire(ctx context.Context, o guard.Order) (guard.Target, guard.Outcome) {
	return acquire(ctx, o, t.Next, t.Fallback, t.terminateClients)
}

// clientTarget is the process of an order, acquired by the next terminator.
type clientTarget struct {
	guard.Target
	order    guard.Order
	fallback limits.MPSTermination
	// terminateClients terminates the clients that the order names through the
	// daemon, or returns why that cannot be done with certainty.
	terminateClients func(context.Context, guard.Order) error
}

func acquire(ctx context.Context, o guard.Order, next guard.Terminator, fallback limits.MPSTermination,
	terminateClients func(context.Context, guard.Order) error) (guard.Target, guard.Outcome) {
	target, out := next.Acquire(ctx, o)
	if target == nil || !o.MPS {
		return target, out
	}
	return &clientTarget{target, o, fallback, terminateClients}, out
}

// Terminate implements guard.Target.
func (c *clientTarget) Terminate(ctx context.Context) guard.Outcome {
	if err := c.terminateClients(ctx, c.order); err != nil && c.fallback != limits.MPSTerminationSignal {
		return guard.Outcome{Result: guard.Skipped, Reason: fmt.Sprintf("a signal may harm the other clients of its MPS daemon, and %v", err)}
	}
	return c.Target.Terminate(ctx)
}

func (t *Terminator) terminateClients(ctx context.Context, o guard.Order) error {
	if t.Namespace == 0 {
		return fmt.Errorf("the pod's PID namespace is unknown")
	}
	all, err := t.Daemon.Clients(ctx)
	if err != nil {
		return err
	}
	found := inNamespace(all, t.Namespace)
	switch {
	case len(found) == 0 && t.Nested(o):
		return fmt.Errorf("the daemon knows no client of this pod, and the process may be one under another PID namespace")
	case len(found) == 0:
		return nil // a process that evades the daemon is an ordinary one, and harms no client
	case !o.Alone:
		return fmt.Errorf("the pod has other processes on its devices, so that it is not certain which is the daemon's client")
	case len(found) > 1 && o.Kind != guard.TerminateContainer:
		return fmt.Errorf("the daemon has %d clients of this pod and does not report which is which", len(found))
	}
	for _, f := range found {
		if err := t.Daemon.Terminate(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// inNamespace returns the clients of one PID namespace, each once.
func inNamespace(clients []Client, namespace uint64) []Client {
	var found []Client
	seen := map[int]bool{}
	for _, c := range clients {
		if c.Namespace == namespace && !seen[c.PID] {
			seen[c.PID] = true
			found = append(found, c)
		}
	}
	return found
}
