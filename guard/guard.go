package guard

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// Sampler reads the devices.
type Sampler interface {
	// Sample returns a sample in bounded time, whatever the driver does. Its lists
	// may be as old as maxAge; with 0 they are new. What could not be read is a
	// fault in the sample.
	Sample(ctx context.Context, maxAge time.Duration) Sample
}

// Terminator terminates processes.
type Terminator interface {
	// Acquire opens a handle on what the order names, so that nothing else can be
	// hit through it, and checks that it is still the same. When that fails, the
	// Target is nil and the outcome has the reason.
	Acquire(ctx context.Context, o Order) (Target, Outcome)
}

// Target is an open handle on what an order names.
type Target interface {
	// Terminate terminates the target and returns what came of it. It returns in
	// bounded time, and early when ctx is done.
	Terminate(ctx context.Context) Outcome
	// Release closes the handle, whether or not the target was terminated.
	Release()
}

// Reporter reports what the guard does and observes.
type Reporter interface {
	// Report is called for each event of a step.
	Report(Event)
	// Ordered is called for each order, before it is carried out.
	Ordered(Order)
	// Observed is called after each sample, with the state it led to.
	Observed(Sample, State)
}

// Guard enforces the limits of one pod.
type Guard struct {
	Limits     limits.Limits
	Sampler    Sampler
	Terminator Terminator
	Reporter   Reporter
	// Jitter spreads the samples of many guards on a node; nil: up to a tenth
	// sooner.
	Jitter func(time.Duration) time.Duration
}

// Run samples, steps, reports and carries out orders until ctx is done. It waits
// for a termination in progress before it returns.
func (g *Guard) Run(ctx context.Context) {
	var (
		state       State
		maxAge      time.Duration
		outcomes    = make(chan Outcome, 1)
		outcome     *Outcome
		terminating bool
	)
	for ctx.Err() == nil {
		sample := g.Sampler.Sample(ctx, maxAge)
		sample.Outcome = outcome
		var order *Order
		var events []Event
		state, order, events = Step(state, sample, g.Limits)
		g.report(order, events)
		g.Reporter.Observed(sample, state)
		var wait time.Duration
		wait, maxAge = SampleInterval(state, g.Limits)
		switch {
		case order == nil:
		case order.Kind == Confirm:
			wait, maxAge = 0, 0
		default:
			terminating = true
			g.begin(ctx, state, *order, outcomes)
		}
		if outcome = g.wait(ctx, wait, outcomes); outcome != nil {
			terminating = false
		}
	}
	if terminating {
		<-outcomes
	}
}

func (g *Guard) report(order *Order, events []Event) {
	for _, e := range events {
		g.Reporter.Report(e)
	}
	if order != nil {
		g.Reporter.Ordered(*order)
	}
}

// begin acquires what the order names, samples once more, and terminates it
// beside the loop. Exactly one outcome follows.
func (g *Guard) begin(ctx context.Context, s State, o Order, outcomes chan<- Outcome) {
	target, failed := g.Terminator.Acquire(ctx, o)
	if target == nil {
		outcomes <- settled(failed, o)
		return
	}
	if !StillOver(s, g.Sampler.Sample(ctx, 0), o, g.Limits) {
		target.Release()
		outcomes <- settled(Outcome{Result: Gone, Reason: "it was no longer over its limit when it was sampled again"}, o)
		return
	}
	if g.Limits.DryRun {
		target.Release()
		outcomes <- settled(Outcome{Result: DryRun}, o)
		return
	}
	go func() {
		out := target.Terminate(ctx)
		target.Release()
		outcomes <- settled(out, o)
	}()
}

func settled(out Outcome, o Order) Outcome {
	out.Order, out.At = o, time.Now()
	return out
}

// wait waits for the time to pass, or for the outcome of the termination in
// progress.
func (g *Guard) wait(ctx context.Context, d time.Duration, outcomes <-chan Outcome) *Outcome {
	jitter := g.Jitter
	if jitter == nil {
		jitter = sooner
	}
	timer := time.NewTimer(jitter(d))
	defer timer.Stop()
	select {
	case out := <-outcomes:
		return &out
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// sooner takes up to a tenth off.
func sooner(d time.Duration) time.Duration {
	if d < 10 {
		return d
	}
	return d - rand.N(d/10)
}
