package node_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/guard/proc"
)

var steps = flag.Int("node.steps", 20_000, "random steps of the node")

// counter checks whom orders name, and ends after so many samples.
type counter struct {
	world *world
	left  int
	end   func()
}

func (c *counter) Pod(node.Pod) guard.Reporter { return c }
func (c *counter) Left(node.Pod)               {}
func (c *counter) Sampled(node.Sample) {
	if c.left--; c.left == 0 {
		c.end()
	}
}
func (c *counter) Report(guard.Event)                 {}
func (c *counter) Observed(guard.Sample, guard.State) {}

// Ordered implements guard.Reporter. A device may list memory under the PID of a process
// that never had it.
func (c *counter) Ordered(o guard.Order) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if o.Kind == guard.TerminateProcess && !c.world.holders[holder{o.Device, o.Process.PID, o.Process.Start}] && c.world.violation == "" {
		c.world.violation = fmt.Sprintf("step %d: an order names pid %d, which never used %s: %+v", c.world.steps, o.Process.PID, o.Device, o)
	}
}

// TestNoProcessOutsideAPodOverItsLimit runs the agent over nodes on which anything
// may happen between two reads.
func TestNoProcessOutsideAPodOverItsLimit(t *testing.T) {
	t.Parallel()
	const worlds = 4
	for seed := range uint64(worlds) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(seed)
			n, err := proc.NewNode(w)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			agent := &node.Agent{Reader: devicesReader{w}, Node: n, Pods: w, Reporter: &counter{w, *steps / worlds, cancel}, Open: w.open}
			agent.Run(ctx)
			if w.violation != "" {
				t.Errorf("seed %d: %s", seed, w.violation)
			}
			if w.signaled < w.steps/200 {
				t.Errorf("seed %d: %d signals in %d steps are too few to show anything", seed, w.signaled, w.steps)
			}
		})
	}
}
