package guard

import (
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

const (
	blindAfter  = 3                // failing looks before a device is blind
	sightAfter  = 3                // good looks in a row before it sees again
	warnAfter   = 2                // looks at or above the soft mark before the owner is warned
	easeBand    = 5                // points below the soft mark that count as clearly below
	easeAfter   = 5 * time.Second  // clearly below for this long re-arms the warning
	fadeAfter   = 15 * time.Second // an ended process's memory should be gone by then
	fullPercent = 99               // of a device in use from which an allocation fails for want of room
)

// turn is one Step in progress.
type turn struct {
	limits  limits.Limits
	sample  Sample
	state   State
	actions []Action
	fresh   map[string]bool // devices whose list is trusted and new
}

// Step returns what is known after a look, and what to do about it, in order.
// It asks for at most one ending, of a process that the sample lists in a
// container the limits name, or of such a container. A sample that is not newer
// than the last is no evidence; only its outcome is taken in.
func Step(s State, in Sample, l limits.Limits) (State, []Action) {
	t := &turn{limits: l, sample: in, state: s.clone(), fresh: map[string]bool{}}
	t.learn()
	if !in.Taken.After(s.Looked) {
		return t.state, t.actions
	}
	t.state.Looked = in.Taken
	t.sense()
	t.weigh()
	t.settleFading()
	t.decide()
	return t.state, t.actions
}

func (t *turn) say(a Action) {
	a.DryRun = t.limits.DryRun
	t.actions = append(t.actions, a)
}

// learn takes in what came of the ending in hand.
func (t *turn) learn() {
	out := t.sample.Outcome
	if out == nil || t.state.Ending == nil {
		return
	}
	t.state.Ending = nil
	t.state.Acted = out.At
	t.state.Rest = out.Result != Gone
	w := t.state.watch(out.Order.Container, out.Order.Device)
	w.Confirming = false
	if out.Result.counts() {
		t.state.Ends = append(t.state.Ends, End{out.Order.Container, out.At})
	}
	if out.Result == Ended && !out.Order.Whole {
		t.state.Fading = append(t.state.Fading, Fade{out.Order.Device, out.Order.Process, out.At.Add(fadeAfter)})
	}
	if out.Reason != "" && !out.Result.counts() && w.Said == out.Reason {
		return
	}
	if !out.Result.counts() {
		w.Said = out.Reason
	}
	t.say(Action{Kind: Report, Container: out.Order.Container, Device: out.Order.Device, Order: out.Order, Outcome: *out,
		SliceBytes: t.slice(out.Order.Container)})
}

func (t *turn) slice(container string) int64 {
	c, _ := t.limits.Container(container)
	return c.SliceBytes
}

// settleFading forgets ended processes whose memory is gone, and reports one
// whose memory is not.
func (t *turn) settleFading() {
	kept := t.state.Fading[:0]
	for _, f := range t.state.Fading {
		listed := false
		for _, d := range t.sample.Devices {
			listed = listed || d.ID == f.Device && d.Fault == "" && contains(d.Processes, f.Process.PID)
		}
		if !t.fresh[f.Device] || listed && t.sample.Taken.Before(f.Until) {
			kept = append(kept, f)
			continue
		}
		if listed {
			t.say(Action{Kind: Lingers, Container: f.Process.Container, Device: f.Device, Process: f.Process})
		}
	}
	t.state.Fading = kept
}

func contains(ps []Process, pid int) bool {
	for _, p := range ps {
		if p.PID == pid {
			return true
		}
	}
	return false
}
