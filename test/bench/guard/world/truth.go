package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// observe keeps, beside the step, for how long trusted samples show each
// container over its slice.
func (w *World) observe(s guard.Sample) {
	for _, id := range []string{"gpu0", "gpu1"} {
		d := device(s, id)
		for _, c := range append(slices.Clone(w.limits.Containers),
			w.rest("debug", guard.UnnamedContainer, id), w.rest(guard.UnnamedContainer, "debug", id)) {
			at := place{c.Name, id}
			r := w.runs[at]
			switch {
			case d == nil || d.Fault != "" || outside(*d):
				r.samples = 0
			case !d.Listed.Equal(s.Taken): // repeats an older list: no evidence
			case w.truth(at) > w.limit(c, *d):
				r = r.extend(s.Taken)
			default:
				r.over, r.samples = max(0, min(r.over, w.limits.Grace)-min(s.Taken.Sub(r.last), 6*time.Second)/10), 0
			}
			if d != nil && d.Fault == "" {
				r.last = d.Listed
			}
			w.runs[at] = r
		}
	}
}

func (r run) extend(now time.Time) run {
	if r.samples++; r.samples > 1 {
		r.over += now.Sub(r.last)
	}
	return r
}

// rest is the part of the device beside the containers with a slice and the other without.
func (w *World) rest(name, other, id string) limits.Container {
	left := limits.Container{Name: name}
	for _, c := range w.limits.Containers {
		used := w.truth(place{c.Name, id})
		left.SliceBytes += max(0, c.SliceBytes-used)
		left.LimitBytes += max(0, c.LimitBytes-used)
	}
	left.SliceBytes = max(0, left.SliceBytes-w.truth(place{other, id}))
	left.LimitBytes = max(0, left.LimitBytes-w.truth(place{other, id}))
	return left
}

// truth is the container's real use of the device.
func (w *World) truth(at place) int64 {
	var sum int64
	for _, p := range w.processes {
		if p.Container == at.container && p.device == at.device {
			sum += p.bytes
		}
	}
	return sum
}

func (w *World) limit(c limits.Container, d guard.Device) int64 {
	if w.limits.Act == limits.ActPressure && d.UsedBytes*100 < d.TotalBytes*int64(w.limits.PressurePercent) {
		return c.LimitBytes
	}
	return c.SliceBytes
}

func (w *World) tally(events []guard.Event) {
	for _, e := range events {
		switch e.Kind {
		case guard.NearLimit:
			w.count.Warned++
		case guard.NotEnforcing:
			w.count.NotEnforcing++
		}
	}
}

// verify compares an order with the truth.
func (w *World) verify(o guard.Order, s guard.Sample) {
	_, sliced := w.limits.Container(o.Container)
	sliced = sliced || o.Container == "debug" || o.Container == guard.UnnamedContainer && o.Kind == guard.TerminateProcess
	d := device(s, o.Device)
	r := w.runs[place{o.Container, o.Device}]
	switch {
	case w.busy:
		w.wrong("a second order while one is in progress")
	case !sliced:
		w.wrong("named %s, which has no slice", o.Container)
	case d == nil || d.Fault != "" || outside(*d) || !d.Listed.Equal(s.Taken):
		w.wrong("acted on a device that cannot be relied on: %+v", d)
	case r.samples < 2 || r.over < w.limits.Grace:
		w.wrong("%s was over its limit for %s over %d samples", o.Container, r.over, r.samples)
	case !w.settled.IsZero() && w.state.Settling && s.Taken.Sub(w.settled) < w.limits.Settle:
		w.wrong("acted %s after the last termination", s.Taken.Sub(w.settled))
	case o.Kind == guard.TerminateProcess && !w.mayTerminate(o, *d):
		w.wrong("named %+v, which it may not", o.Process)
	}
}

// mayTerminate reports whether the victim is one that the sample lists, with a figure,
// in the container, and not protected.
func (w *World) mayTerminate(o guard.Order, d guard.Device) bool {
	for _, p := range d.Processes {
		if p == o.Process {
			return p.Container == o.Container && p.Known && p.UsedBytes > 0 && !p.Protected && p.PID > 1
		}
	}
	return false
}

// carryOut carries out the order, or not, and reports the outcome some steps later.
func (w *World) carryOut(o guard.Order) {
	results := []guard.Result{guard.Terminated, guard.Terminated, guard.Terminated, guard.Gone, guard.Denied, guard.TimedOut, guard.Skipped}
	result := results[w.r.IntN(len(results))]
	w.pending, w.after, w.busy = &guard.Outcome{Order: o, Result: result, Reason: "so"}, 1+w.r.IntN(4), true
	if result != guard.Terminated {
		return
	}
	for at, r := range w.runs {
		if at.container == o.Container && at.device == o.Device {
			r.over = 0
			w.runs[at] = r
		}
	}
	kept := w.processes[:0]
	for _, p := range w.processes {
		if victim := p.PID == o.Process.PID || o.Kind == guard.TerminateContainer && p.Container == o.Container; !victim {
			kept = append(kept, p)
		}
	}
	w.processes = kept
}

func (w *World) wrong(format string, args ...any) {
	if w.count.False++; w.count.Why == "" {
		w.count.Why = fmt.Sprintf("step %d: ", w.count.Steps) + fmt.Sprintf(format, args...)
	}
}

func device(s guard.Sample, id string) *guard.Device {
	for i := range s.Devices {
		if s.Devices[i].ID == id && s.Fault == "" {
			return &s.Devices[i]
		}
	}
	return nil
}

func outside(d guard.Device) bool {
	for _, p := range d.Processes {
		if p.Container == "" {
			return true
		}
	}
	return false
}
