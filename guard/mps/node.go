package mps

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// NodeTerminator terminates MPS clients by their PIDs on the node before Next
// signals them. It implements guard.Terminator; a process that is no client of any
// daemon is an ordinary process, and left to Next.
type NodeTerminator struct {
	Daemons []Daemon // of the node
	// Named returns the PIDs of the processes that the order names.
	Named func(o guard.Order) []int
	// IsServer reports whether the PID is an MPS server on this node. A daemon in a
	// PID namespace of its own numbers its servers otherwise, and its clients.
	IsServer func(pid int) bool
	Fallback limits.MPSTermination
	Next     guard.Terminator
}

// Acquire implements guard.Terminator.
func (t *NodeTerminator) Acquire(ctx context.Context, o guard.Order) (guard.Target, guard.Outcome) {
	return acquire(ctx, o, t.Next, t.Fallback, t.terminateClients)
}

// terminateClients queries every daemon before it terminates a client: one that
// does not answer may have the others.
func (t *NodeTerminator) terminateClients(ctx context.Context, o guard.Order) error {
	if len(t.Daemons) == 0 {
		return errors.New("no MPS daemon of the node is in the agent's reach")
	}
	named := t.Named(o)
	found := make([][]Client, len(t.Daemons))
	for i, d := range t.Daemons {
		all, err := d.Clients(ctx)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(all, func(c Client) bool { return !t.IsServer(c.Server) }); i >= 0 {
			return fmt.Errorf("pid %d of the daemon's server is no MPS server of the node: the daemon has PIDs of its own", all[i].Server)
		}
		found[i] = slices.DeleteFunc(once(all), func(c Client) bool { return !slices.Contains(named, c.PID) })
	}
	for i, d := range t.Daemons {
		for _, c := range found[i] {
			if err := d.Terminate(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// once returns each client of a server once: a daemon lists it for each device.
func once(clients []Client) []Client {
	type key struct{ server, pid int }
	seen := map[key]bool{}
	return slices.DeleteFunc(slices.Clone(clients), func(c Client) bool {
		k := key{c.Server, c.PID}
		repeated := seen[k]
		seen[k] = true
		return repeated
	})
}
