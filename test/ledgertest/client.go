package ledgertest

import (
	"context"
	"time"

	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// Call is a kind of call to the cluster.
type Call string

// The calls.
const (
	Get  Call = "get"
	Put  Call = "put" // create or update
	List Call = "list"
)

// Fault is the fault of one call. The zero Fault is none.
type Fault struct {
	Before time.Duration // before the call takes effect, even if the caller is gone
	After  time.Duration // before the answer
	Drop   bool          // it never takes effect
	Mute   bool          // there is no answer
	Reject bool          // the API server rejects it
}

// Client is one replica's client of the cluster. It implements ledger.Store, ledger.Lister, ledger.Watcher and
// ledger.Options.Shown.
type Client struct {
	Cluster *Cluster
	// Faults returns the fault of a call. Optional.
	Faults func(Call) Fault
	// Late returns by how much the replica's watches are late, and whether they are there. Optional: without it there are none.
	Late func() (time.Duration, bool)
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

// View implements ledger.Watcher.
func (c *Client) View(namespaces []string, reservations []ledger.Reservation) (ledger.View, bool) {
	if c.Late == nil {
		return ledger.View{}, false
	}
	late, ok := c.Late()
	if !ok {
		return ledger.View{Pending: true}, false
	}
	return c.Cluster.view(namespaces, reservations, late)
}

// Shown is ledger.Options.Shown.
func (c *Client) Shown(name string) (ledger.Object, bool) {
	if c.Late == nil {
		return ledger.Object{}, false
	}
	late, ok := c.Late()
	if !ok {
		return ledger.Object{}, false
	}
	return c.Cluster.shown(name, late)
}

func (c *Client) fault(call Call) Fault {
	if c.Faults == nil {
		return Fault{}
	}
	return c.Faults(call)
}

// do runs effect after the fault's delay, and answers unless the caller is gone or the answer is lost.
func do[T any](ctx context.Context, c *Cluster, f Fault, effect func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if f.Reject {
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
