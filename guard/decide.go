package guard

import (
	"fmt"
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// decide asks for a second look, or for one ending, of the container that is
// furthest past its wall.
func (t *turn) decide() {
	w := t.due()
	if w == nil {
		return
	}
	if !w.Confirming {
		w.Confirming = true
		t.say(Action{Kind: Confirm, Container: w.Container, Device: w.Device, HeldBytes: w.HeldBytes, WallBytes: w.WallBytes})
		return
	}
	o := Order{Container: w.Container, Device: w.Device, HeldBytes: w.HeldBytes, WallBytes: w.WallBytes,
		Over: t.state.sensor(w.Device).Listed.Sub(w.Over)}
	if t.state.ends(w.Container, t.sample.Taken.Add(-t.limits.EndsWindow)) < t.limits.MaxEnds {
		t.endOne(w, o)
		return
	}
	if t.limits.Terminate == limits.LastObserve {
		t.leave(w, o, fmt.Sprintf("ended %s within %s, and policy ends no more", count(t.limits.MaxEnds, "time", "times"), Span(t.limits.EndsWindow)))
		return
	}
	o.Whole = true
	o.MPS = slices.ContainsFunc(w.Processes, func(p Process) bool { return p.MPS })
	o.Alone = t.alone(func(p Process) bool { return p.Container == w.Container })
	t.order(EndContainer, o)
}

// due returns the container to act on, or nil when there is none or it is not
// the time.
func (t *turn) due() *Watch {
	s := &t.state
	if s.Ending != nil || s.Rest && t.sample.Taken.Sub(s.Acted) < t.limits.Settle {
		return nil
	}
	s.Ends = slices.DeleteFunc(s.Ends, func(e End) bool { return t.sample.Taken.Sub(e.At) > t.limits.EndsWindow })
	var first *Watch
	for i := range s.Watches {
		w := &s.Watches[i]
		listed := s.sensor(w.Device).Listed
		if w.Over.IsZero() || !t.fresh[w.Device] || listed.Sub(w.Over) < t.limits.Grace || !listed.After(s.Acted) {
			continue
		}
		if first == nil || worst(*w, *first) < 0 {
			first = w
		}
	}
	return first
}

// endOne asks for the end of one process of the container.
func (t *turn) endOne(w *Watch, o Order) {
	able := slices.DeleteFunc(slices.Clone(w.Processes), func(p Process) bool {
		return !p.Known || p.UsedBytes <= 0 || p.Protected || p.PID <= 1
	})
	if len(able) == 0 {
		t.leave(w, o, "it has no process that the guard may end")
		return
	}
	o.Process = slices.MinFunc(able, victim)
	o.MPS = o.Process.MPS
	o.Alone = t.alone(func(p Process) bool { return p.same(o.Process) })
	t.order(EndProcess, o)
}

// alone reports whether every process that the devices list is one that the
// order names.
func (t *turn) alone(named func(Process) bool) bool {
	for _, d := range t.sample.Devices {
		if !t.fresh[d.ID] || slices.ContainsFunc(d.Processes, func(p Process) bool { return !named(p) }) {
			return false
		}
	}
	return true
}

func (t *turn) order(kind Kind, o Order) {
	t.state.Ending = &o
	t.say(Action{Kind: kind, Container: o.Container, Device: o.Device, Process: o.Process, HeldBytes: o.HeldBytes,
		WallBytes: o.WallBytes, SliceBytes: t.slice(o.Container), Order: o})
}

// leave says once in a run why a container past its wall is left alone.
func (t *turn) leave(w *Watch, o Order, reason string) {
	if w.Said == reason {
		return
	}
	w.Said = reason
	t.say(Action{Kind: Observe, Container: w.Container, Device: w.Device, HeldBytes: w.HeldBytes, WallBytes: w.WallBytes,
		SliceBytes: t.slice(w.Container), Reason: reason, Order: o})
}

// Still reports whether a sample, taken after the victim was taken hold of,
// still calls for the order: the very process listed, the container past its
// wall on a device that can be relied on.
func Still(s State, in Sample, o Order, l limits.Limits) bool {
	t := turn{limits: l, sample: in, state: s}
	c, sliced := l.Container(o.Container)
	for _, d := range in.Devices {
		if d.ID != o.Device || !sliced || in.Fault != "" || t.untrusted(d) != "" || !d.Listed.After(s.Looked) {
			continue
		}
		mine := of(c.Name, d.Processes)
		listed := o.Whole || slices.ContainsFunc(mine, func(p Process) bool { return p.same(o.Process) && p.Known })
		return listed && held(d, c.Name, mine) > wall(l, c, d)
	}
	return false
}

// consequence says what a warned owner is to expect.
func consequence(l limits.Limits, c limits.Container, w *Watch) string {
	burst := l.Act == limits.ActPressure && c.LimitBytes > c.SliceBytes
	switch {
	case burst && w.WallBytes == c.LimitBytes:
		return fmt.Sprintf("past %s a process is ended when the device is nearly full, past %s always", Size(c.SliceBytes), Size(c.LimitBytes))
	case l.Grace >= time.Second:
		return fmt.Sprintf("a process is ended once it is past %s for %s", Size(w.WallBytes), l.Grace)
	}
	return fmt.Sprintf("a process is ended once it is past %s", Size(w.WallBytes))
}
