package guard

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// Eyes look at the devices.
type Eyes interface {
	// Look returns a sample in bounded time, whatever the driver does. Its lists
	// may be as old as maxAge; with 0 they are new. What could not be read is a
	// fault in the sample.
	Look(ctx context.Context, maxAge time.Duration) Sample
}

// Hands take hold of processes and end them.
type Hands interface {
	// Hold takes hold of what the order names, so that nothing else can be hit
	// by what is done through it, and checks that it is the same still. When it
	// cannot, the outcome says why and Held is nil.
	Hold(ctx context.Context, o Order) (Held, Outcome)
}

// Held is what an order names, held on to.
type Held interface {
	// End ends it and returns what came of it. It returns in bounded time, and
	// early when ctx is done.
	End(ctx context.Context) Outcome
	// Release lets go of it, ended or not.
	Release()
}

// Voice tells of what the guard does and sees.
type Voice interface {
	// Say is called for each action, before it is carried out.
	Say(Action)
	// Saw is called after each look, with the state it led to.
	Saw(Sample, State)
}

// Guard holds one pod to its limits.
type Guard struct {
	Limits limits.Limits
	Eyes   Eyes
	Hands  Hands
	Voice  Voice
	// Jitter spreads the looks of many guards on a node; nil: up to a tenth
	// sooner.
	Jitter func(time.Duration) time.Duration
}

// Run looks, steps, acts and reports until ctx is done. It waits for an ending
// in hand before it returns.
func (g *Guard) Run(ctx context.Context) {
	var (
		state    State
		maxAge   time.Duration
		outcomes = make(chan Outcome, 1)
		pending  *Outcome
		busy     bool
	)
	for ctx.Err() == nil {
		sample := g.Eyes.Look(ctx, maxAge)
		sample.Outcome, pending = pending, nil
		var actions []Action
		state, actions = Step(state, sample, g.Limits)
		again, order := g.perform(actions)
		g.Voice.Saw(sample, state)
		if order != nil {
			busy = true
			g.begin(ctx, state, *order, outcomes)
		}
		wait, age := Pace(state, g.Limits)
		maxAge = age
		if again {
			wait, maxAge = 0, 0
		}
		if pending = g.rest(ctx, wait, outcomes); pending != nil {
			busy = false
		}
	}
	if busy {
		<-outcomes
	}
}

// perform says every action and returns whether a second look is due at once,
// and the ending to begin, if any.
func (g *Guard) perform(actions []Action) (again bool, begin *Order) {
	for _, a := range actions {
		g.Voice.Say(a)
		switch a.Kind {
		case Confirm:
			again = true
		case EndProcess, EndContainer:
			begin = &a.Order
		}
	}
	return again, begin
}

// begin takes hold of what the order names, looks once more, and ends it beside
// the loop. Exactly one outcome follows.
func (g *Guard) begin(ctx context.Context, s State, o Order, outcomes chan<- Outcome) {
	held, refused := g.Hands.Hold(ctx, o)
	if held == nil {
		outcomes <- settled(refused, o)
		return
	}
	if !Still(s, g.Eyes.Look(ctx, 0), o, g.Limits) {
		held.Release()
		outcomes <- settled(Outcome{Result: Gone, Reason: "it was no longer past its slice when it was looked at again"}, o)
		return
	}
	if g.Limits.DryRun {
		held.Release()
		outcomes <- settled(Outcome{Result: Spared}, o)
		return
	}
	go func() {
		out := held.End(ctx)
		held.Release()
		outcomes <- settled(out, o)
	}()
}

func settled(out Outcome, o Order) Outcome {
	out.Order, out.At = o, time.Now()
	return out
}

// rest waits for the time to pass, or for the outcome of the ending in hand.
func (g *Guard) rest(ctx context.Context, wait time.Duration, outcomes <-chan Outcome) *Outcome {
	jitter := g.Jitter
	if jitter == nil {
		jitter = sooner
	}
	timer := time.NewTimer(jitter(wait))
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
