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
	// may be as old as maxAge; with 0 they are new. A failed read is a fault in the
	// sample.
	Sample(ctx context.Context, maxAge time.Duration) Sample
}

// Terminator terminates processes.
type Terminator interface {
	// Acquire opens a handle on the order's process, so that nothing else can be
	// hit through it, and checks that it is still the same. When that fails, the
	// Target is nil and the outcome has the reason.
	Acquire(ctx context.Context, o Order) (Target, Outcome)
}

// Target is an open handle on the process of an order.
type Target interface {
	// Terminate terminates the target and returns the outcome. It returns in
	// bounded time, and early when ctx is done.
	Terminate(ctx context.Context) Outcome
	// Release closes the handle, whether or not the target was terminated.
	Release()
}

// Reporter reports the guard's actions and observations.
type Reporter interface {
	// Report is called for each event of a step.
	Report(Event)
	// Ordered is called for each order, before it is carried out.
	Ordered(Order)
	// Observed is called after each sample, with the state it led to.
	Observed(Sample, State)
}

// Guard enforces the limits of one pod. It is not safe for concurrent use.
type Guard struct {
	Limits     limits.Limits
	Sampler    Sampler
	Terminator Terminator
	Reporter   Reporter
	// Jitter spreads the samples of many guards on a node; nil: up to a tenth
	// sooner.
	Jitter func(time.Duration) time.Duration

	state       State
	outcomes    chan Outcome // of the termination in progress; nil: there is none
	lastOutcome *Outcome     // that no step has taken in
}

// Run samples, steps, reports and carries out orders until ctx is done. It waits
// for a termination in progress before it returns.
func (g *Guard) Run(ctx context.Context) {
	var wait, maxAge time.Duration
	for ctx.Err() == nil {
		wait, maxAge = g.Advance(ctx, g.Sampler.Sample(ctx, maxAge))
		g.wait(ctx, wait)
	}
	g.Finish()
}

// Advance steps with a sample, reports, and begins the ordered termination. It
// returns how long to wait for the next sample, and how old a list that one may
// repeat.
func (g *Guard) Advance(ctx context.Context, sample Sample) (wait, maxAge time.Duration) {
	g.takeOutcome()
	sample.Outcome, g.lastOutcome = g.lastOutcome, nil
	var order *Order
	var events []Event
	g.state, order, events = Step(g.state, sample, g.Limits)
	g.report(order, events)
	g.Reporter.Observed(sample, g.state)
	switch {
	case order == nil:
	case order.Kind == Confirm:
		return 0, 0 // a list from before the order would confirm nothing
	default:
		g.outcomes = make(chan Outcome, 1)
		g.begin(ctx, g.state, *order, g.outcomes)
	}
	return SampleInterval(g.state, g.Limits)
}

// DoubleCounted returns the part of the pod's memory on a device that is taken to be
// listed twice.
func (g *Guard) DoubleCounted(device string) (bytes int64) {
	for _, u := range g.state.Usages {
		if u.Device == device {
			bytes += u.DoubleCountedBytes
		}
	}
	return bytes
}

// Finish waits for a termination in progress, and reports the outcome that no step
// has taken in: the last container of a pod exits with the terminated process, and
// the guard with the pod.
func (g *Guard) Finish() {
	if g.outcomes != nil {
		g.setOutcome(<-g.outcomes)
	}
	g.TryFinish()
}

// TryFinish does the same where no termination is in progress, and reports whether
// that is so.
func (g *Guard) TryFinish() bool {
	if g.takeOutcome(); g.outcomes != nil {
		return false
	}
	var events []Event
	g.state, _, events = Step(g.state, Sample{Outcome: g.lastOutcome}, g.Limits)
	g.lastOutcome = nil
	g.report(nil, events)
	return true
}

// takeOutcome takes the outcome of a termination that has come to its end.
func (g *Guard) takeOutcome() {
	select {
	case out := <-g.outcomes:
		g.setOutcome(out)
	default:
	}
}

func (g *Guard) setOutcome(out Outcome) { g.lastOutcome, g.outcomes = &out, nil }

func (g *Guard) report(order *Order, events []Event) {
	for _, e := range events {
		g.Reporter.Report(e)
	}
	if order != nil {
		g.Reporter.Ordered(*order)
	}
}

// begin acquires the order's process, samples again, and terminates it beside the
// loop. Exactly one outcome follows.
func (g *Guard) begin(ctx context.Context, s State, o Order, outcomes chan<- Outcome) {
	target, failed := g.Terminator.Acquire(ctx, o)
	if target == nil {
		outcomes <- settle(failed, o)
		return
	}
	if reason := g.withheld(ctx, s, o); reason != "" {
		target.Release()
		outcomes <- settle(Outcome{Result: Gone, Reason: reason}, o)
		return
	}
	if g.Limits.DryRun { // so late, to report whether the termination would have been possible
		target.Release()
		outcomes <- settle(Outcome{Result: DryRun}, o)
		return
	}
	go func() {
		out := target.Terminate(ctx)
		target.Release()
		outcomes <- settle(out, o)
	}()
}

// withheld samples until a sample calls for the order, a few times, and returns
// why none did. One sample would spare whoever frees and allocates in turns, and
// whoever it could not read; who is idle is spared.
func (g *Guard) withheld(ctx context.Context, s State, o Order) (reason string) {
	for range finalSamples {
		if reason = withheld(s, g.Sampler.Sample(ctx, 0), o, g.Limits); reason == "" || o.forIdleness() {
			break
		}
	}
	return reason
}

func settle(out Outcome, o Order) Outcome {
	out.Order, out.At = o, time.Now()
	return out
}

// wait waits for the time to pass, or for the termination in progress.
func (g *Guard) wait(ctx context.Context, d time.Duration) {
	jitter := g.Jitter
	if jitter == nil {
		jitter = sooner
	}
	timer := time.NewTimer(jitter(d))
	defer timer.Stop()
	select {
	case out := <-g.outcomes:
		g.setOutcome(out)
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sooner takes up to a tenth off.
func sooner(d time.Duration) time.Duration {
	if d < 10 {
		return d
	}
	return d - rand.N(d/10)
}
