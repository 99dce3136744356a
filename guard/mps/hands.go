package mps

import (
	"context"
	"fmt"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// Daemon is what Hands need of an MPS daemon.
type Daemon interface {
	// Clients returns every client, or why the daemon cannot be asked.
	Clients(ctx context.Context) ([]Client, error)
	// Terminate ends a client's contexts and leaves the others whole.
	Terminate(ctx context.Context, client Client) error
}

// Hands end MPS clients through the daemon before other hands signal them. They
// implement guard.Hands; what is no MPS client goes to the other hands as it is.
type Hands struct {
	Daemon    Daemon
	Namespace uint64 // inode of the pod's PID namespace
	Ending    limits.Ending
	Next      guard.Hands
}

// Hold implements guard.Hands.
func (h *Hands) Hold(ctx context.Context, o guard.Order) (guard.Held, guard.Outcome) {
	held, out := h.Next.Hold(ctx, o)
	if held == nil || !o.MPS {
		return held, out
	}
	return &client{Held: held, hands: h, order: o}, out
}

// client is what an order names, held by the other hands.
type client struct {
	guard.Held
	hands *Hands
	order guard.Order
}

// End implements guard.Held.
func (c *client) End(ctx context.Context) guard.Outcome {
	if err := c.terminate(ctx); err != nil && c.hands.Ending != limits.EndingSignal {
		return guard.Outcome{Result: guard.Observed, Reason: fmt.Sprintf("a signal may harm the other clients of its MPS daemon, and %v", err)}
	}
	return c.Held.End(ctx)
}

// terminate ends the clients that the order names through the daemon, or says
// why that cannot be done with certainty.
func (c *client) terminate(ctx context.Context) error {
	if c.hands.Namespace == 0 {
		return fmt.Errorf("the pod's PID namespace is not known")
	}
	all, err := c.hands.Daemon.Clients(ctx)
	if err != nil {
		return err
	}
	found := inNamespace(all, c.hands.Namespace)
	switch {
	case len(found) == 0:
		return fmt.Errorf("the daemon knows no client of this pod")
	case !c.order.Alone:
		return fmt.Errorf("the pod has other processes on its devices, so that the daemon's client cannot be told from them")
	case len(found) > 1 && !c.order.Whole:
		return fmt.Errorf("the daemon has %d clients of this pod and does not say which is which", len(found))
	}
	for _, f := range found {
		if err := c.hands.Daemon.Terminate(ctx, f); err != nil {
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
