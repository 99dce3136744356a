package world

import (
	"math/rand/v2"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
)

const gib = int64(1) << 30

// Count is the result of a run of random steps.
type Count struct {
	Steps, Warned, Terminated, NotEnforcing int
	// False counts terminations that the truth does not call for.
	False int
	// Why is the first false termination, for a test's message.
	Why string
}

// World is a random world. Use New.
type World struct {
	r         *rand.Rand
	limits    limits.Limits
	now       time.Time
	processes []process
	nextPID   int

	state   guard.State
	pending *guard.Outcome
	after   int // steps until the outcome of the termination in progress is reported
	listed  map[string]guard.Device
	runs    map[place]run
	settled time.Time
	busy    bool
	count   Count
}

type process struct {
	guard.Process
	device string
	bytes  int64
}

type place struct{ container, device string }

// run is for how long in all, and how many samples in a row, a container was truly
// over its slice as far as trusted samples could tell.
type run struct {
	last    time.Time // of the lists
	over    time.Duration
	samples int
}

// New returns a world that is decided by its seed.
func New(seed uint64) *World {
	l := limits.Default()
	l.Containers = []limits.Container{
		{Name: "scorer", SliceBytes: 4 * gib, LimitBytes: 6 * gib, GPUs: 2},
		{Name: "trainer", SliceBytes: 8 * gib, LimitBytes: 12 * gib, GPUs: 2},
	}
	l.Grace, l.Settle, l.MaxTerminations = 500*time.Millisecond, 5*time.Second, 5
	if seed%2 == 1 {
		l.Act = limits.ActPressure
	}
	return &World{r: rand.New(rand.NewPCG(seed, 1)), limits: l, now: time.Unix(1e9, 0), nextPID: 100,
		listed: map[string]guard.Device{}, runs: map[place]run{}}
}

// Run takes n random steps and returns the count so far.
func (w *World) Run(n int) Count {
	for range n {
		w.step()
	}
	return w.count
}

func (w *World) step() {
	w.count.Steps++
	w.live()
	sample := w.sample()
	if w.after--; w.pending != nil && w.after <= 0 {
		sample.Outcome, w.pending = w.pending, nil
		sample.Outcome.At = sample.Taken
		w.settled, w.busy = sample.Taken, false
	}
	before := w.state
	var order *guard.Order
	var events []guard.Event
	w.state, order, events = guard.Step(w.state, sample, w.limits)
	if !sample.Taken.After(before.SampledAt) {
		sample.Devices = nil // an order must not rely on it
		clear(w.listed)      // nor on a later sample that repeats its lists
	} else {
		w.observe(sample)
	}
	w.tally(events)
	if order != nil && order.Kind != guard.Confirm {
		w.count.Terminated++
		w.verify(*order, sample)
		w.carryOut(*order)
	}
}

// live lets time pass and the tenants live.
func (w *World) live() {
	pause := time.Duration(w.r.Int64N(int64(500 * time.Millisecond)))
	switch w.r.IntN(200) {
	case 0:
		pause = time.Minute // the guard was stopped
	case 1:
		pause = -time.Second // the clock went back
	}
	w.now = w.now.Add(pause)
	for i := range w.processes {
		if w.r.IntN(25) == 0 {
			w.processes[i].bytes = max(0, w.processes[i].bytes+w.r.Int64N(6*gib)-2*gib)
		}
	}
	if len(w.processes) < 6 && w.r.IntN(4) == 0 {
		w.spawn()
	}
	if len(w.processes) > 0 && w.r.IntN(40) == 0 {
		i := w.r.IntN(len(w.processes))
		w.processes = append(w.processes[:i], w.processes[i+1:]...)
	}
}

func (w *World) spawn() {
	names := []string{"trainer", "scorer", "trainer", "scorer", "debug", limits.GuardContainer, guard.UnnamedContainer}
	w.nextPID++
	p := process{device: []string{"gpu0", "gpu1"}[w.r.IntN(2)], bytes: w.r.Int64N(9 * gib)}
	p.PID, p.Start, p.Container = w.nextPID, uint64(w.nextPID), names[w.r.IntN(len(names))]
	p.Protected = p.Container == limits.GuardContainer || w.r.IntN(30) == 0
	w.processes = append(w.processes, p)
}

// sample reads the devices as a driver in some mood would.
func (w *World) sample() guard.Sample {
	s := guard.Sample{Taken: w.now}
	if w.r.IntN(60) == 0 {
		s.Fault = "hung"
		return s
	}
	for _, id := range []string{"gpu0", "gpu1"} {
		s.Devices = append(s.Devices, w.read(id))
	}
	return s
}

func (w *World) read(id string) guard.Device {
	d := guard.Device{ID: id, TotalBytes: 24 * gib, Listed: w.now}
	for _, p := range w.processes {
		if p.device != id {
			continue
		}
		d.UsedBytes += p.bytes
		listed := p.Process
		listed.UsedBytes, listed.Known = p.bytes, p.bytes > 0
		if w.r.IntN(40) == 0 {
			listed.UsedBytes, listed.Known = 0, false
		}
		d.Processes = append(d.Processes, listed)
	}
	if w.r.IntN(3) == 0 {
		d.UsedBytes = min(d.TotalBytes, d.UsedBytes+w.r.Int64N(16*gib)) // neighbors
	}
	switch mood := w.r.IntN(120); {
	case mood < 2:
		return guard.Device{ID: id, TotalBytes: d.TotalBytes, UsedBytes: d.UsedBytes, Fault: "lost"} // as the driver: it has no list
	case mood < 4: // a PID of the node, with the figure of another process for one of ours
		d.Processes = append(d.Processes, guard.Process{PID: 600000, UsedBytes: 30 * gib, Known: true})
		if d.Processes[0].Known {
			d.Processes[0].UsedBytes = 30 * gib
		}
	case mood < 12:
		if old, ok := w.listed[id]; ok {
			d.Listed, d.Processes = old.Listed, old.Processes
		}
	}
	w.listed[id] = d
	return d
}
