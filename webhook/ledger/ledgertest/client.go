package ledgertest

import (
	"context"
	"time"

	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// Call is what a Client is about to do.
type Call string

// The calls.
const (
	Get  Call = "get"
	Put  Call = "put" // create or update
	List Call = "list"
)

// Fault is what goes wrong with one call. The zero Fault: nothing does.
type Fault struct {
	Before time.Duration // until the call takes effect; it does even if the caller has gone by then
	After  time.Duration // from then until the answer
	Drop   bool          // it never takes effect
	Mute   bool          // no answer comes
	Refuse bool          // it is refused for good
}

// Client is one replica's way to the cluster. It is a ledger.Store and a ledger.Lister.
type Client struct {
	Cluster *Cluster
	// Faults is asked before each call; nil: none.
	Faults func(Call) Fault
}

// Get implements ledger.Store.
func (c *Client) Get(ctx context.Context, name string) (ledger.Object, error) {
	return do(ctx, c.Cluster, c.fault(Get), func() (ledger.Object, error) { return c.Cluster.get(name) })
}

// Create implements ledger.Store.
func (c *Client) Create(ctx context.Context, o ledger.Object) (ledger.Object, error) {
	return do(ctx, c.Cluster, c.fault(Put), func() (ledger.Object, error) { return c.Cluster.put(o, true) })
}

// Update implements ledger.Store.
func (c *Client) Update(ctx context.Context, o ledger.Object) (ledger.Object, error) {
	return do(ctx, c.Cluster, c.fault(Put), func() (ledger.Object, error) { return c.Cluster.put(o, false) })
}

// List implements ledger.Lister.
func (c *Client) List(ctx context.Context, namespaces []string) (ledger.Listing, error) {
	return do(ctx, c.Cluster, c.fault(List), func() (ledger.Listing, error) { return c.Cluster.list(namespaces), nil })
}

func (c *Client) fault(call Call) Fault {
	if c.Faults == nil {
		return Fault{}
	}
	return c.Faults(call)
}

// do takes effect in its own time, and answers unless the caller has gone or the answer is lost.
func do[T any](ctx context.Context, c *Cluster, f Fault, effect func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if f.Refuse {
		return none, ledger.ErrRejected
	}
	answers := make(chan answer, 1)
	c.flying.Go(func() {
		time.Sleep(f.Before)
		if f.Drop {
			return
		}
		value, err := effect()
		time.Sleep(f.After)
		if !f.Mute {
			answers <- answer{value, err}
		}
	})
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, ledger.ErrUnknown
	}
}
