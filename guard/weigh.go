package guard

import (
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// weigh holds every container against its wall on every device.
func (t *turn) weigh() {
	seen := map[string]bool{}
	for _, d := range t.sample.Devices {
		seen[d.ID] = true
		t.weighDevice(d)
	}
	for i := range t.state.Watches {
		if w := &t.state.Watches[i]; !seen[w.Device] || t.sample.Fault != "" {
			w.breakRun()
		}
	}
}

func (t *turn) weighDevice(d Device) {
	sensor := t.state.sensor(d.ID)
	stale := d.Fault == "" && !d.Listed.After(sensor.Listed)
	full := sensor.Full
	sensor.Full = d.TotalBytes > 0 && percentAtLeast(d.UsedBytes, d.TotalBytes, fullPercent)
	if stale {
		return
	}
	gap := d.Listed.Sub(sensor.Listed)
	if gap > 0 {
		sensor.Listed = d.Listed
	}
	for _, c := range t.limits.Containers {
		mine := of(c.Name, d.Processes)
		if len(mine) == 0 && !t.watched(c.Name, d.ID) {
			continue
		}
		w := t.state.watch(c.Name, d.ID)
		if !t.fresh[d.ID] {
			w.breakRun()
			continue
		}
		if gap > t.longestGap() {
			w.breakRun()
		}
		t.mourn(w, c, d, mine, full || t.state.sensor(d.ID).Full)
		w.measure(held(d, c.Name, mine), gap)
		w.Processes = mine
		t.compare(w, c, d)
	}
}

// longestGap is how far apart two looks may be and still be one run: beyond it
// nobody knows what happened between.
func (t *turn) longestGap() time.Duration { return 2*t.limits.Interval + 2*time.Second }

func (t *turn) watched(container, device string) bool {
	for _, w := range t.state.Watches {
		if w.Container == container && w.Device == device {
			return true
		}
	}
	return false
}

// mourn tells an owner whose process went away on a full device that the
// shortage was not of its making.
func (t *turn) mourn(w *Watch, c limits.Container, d Device, mine []Process, full bool) {
	if !full || w.HeldBytes > c.SliceBytes {
		return
	}
	for _, p := range w.Processes {
		if contains(mine, p.PID) || t.state.fading(d.ID, p.PID) || t.state.Ending != nil && t.state.Ending.Container == c.Name {
			continue
		}
		t.say(Action{Kind: Innocent, Container: c.Name, Device: d.ID, Process: p, HeldBytes: w.HeldBytes, SliceBytes: c.SliceBytes})
		return
	}
}

// held is what a container holds on a device. Memory that two processes share
// may be listed for both, so it is no more than the device has in use, and no
// more than the driver charges to the container.
func held(d Device, container string, mine []Process) int64 {
	var sum int64
	for _, p := range mine {
		if p.Known {
			sum += p.UsedBytes
		}
	}
	if d.UsedBytes > 0 {
		sum = min(sum, d.UsedBytes)
	}
	for _, charge := range d.Charges {
		if charge.Container == container {
			sum = min(sum, charge.UsedBytes)
		}
	}
	return sum
}

// measure takes in what the container holds, some time after the last list.
func (w *Watch) measure(bytes int64, since time.Duration) {
	w.FillRate = 0
	if grown := bytes - w.HeldBytes; grown > 0 && since > 0 {
		w.FillRate = float64(grown) / since.Seconds()
	}
	w.HeldBytes = bytes
	w.PeakBytes = max(w.PeakBytes, bytes)
}

// compare sets the wall, warns, and keeps the run past the wall.
func (t *turn) compare(w *Watch, c limits.Container, d Device) {
	w.WallBytes = wall(t.limits, c, d)
	over := w.HeldBytes > w.WallBytes
	t.warn(w, c, over)
	if !over {
		w.breakRun()
		return
	}
	if w.Over.IsZero() {
		w.Over = d.Listed
	}
}

// wall is what a container may hold on the device at present.
func wall(l limits.Limits, c limits.Container, d Device) int64 {
	nearlyFull := d.TotalBytes > 0 && percentAtLeast(d.UsedBytes, d.TotalBytes, l.PressurePercent)
	if l.Act == limits.ActPressure && !nearlyFull {
		return c.LimitBytes
	}
	return c.SliceBytes
}

// warn warns once when the container comes to the soft mark, and again only
// after it was clearly below.
func (t *turn) warn(w *Watch, c limits.Container, over bool) {
	if !percentAtLeast(w.HeldBytes, c.SliceBytes, t.limits.WarnPercent) {
		w.High = 0
		t.ease(w, c)
		return
	}
	w.High, w.Below = w.High+1, time.Time{}
	if w.Warned || w.High < warnAfter && !over {
		return
	}
	w.Warned = true
	t.say(Action{Kind: Warn, Container: w.Container, Device: w.Device, HeldBytes: w.HeldBytes, WallBytes: w.WallBytes,
		SliceBytes: c.SliceBytes, Reason: consequence(t.limits, c, w)})
}

func (t *turn) ease(w *Watch, c limits.Container) {
	if !w.Warned || percentAtLeast(w.HeldBytes, c.SliceBytes, t.limits.WarnPercent-easeBand) {
		w.Below = time.Time{}
		return
	}
	if w.Below.IsZero() {
		w.Below = t.sample.Taken
	}
	if t.sample.Taken.Sub(w.Below) >= easeAfter {
		w.Warned, w.Below = false, time.Time{}
		t.say(Action{Kind: Eased, Container: w.Container, Device: w.Device, HeldBytes: w.HeldBytes, SliceBytes: c.SliceBytes})
	}
}

func of(container string, ps []Process) []Process {
	var mine []Process
	for _, p := range ps {
		if p.Container == container {
			mine = append(mine, p)
		}
	}
	return mine
}

func percentAtLeast(part, whole int64, percent int) bool { return part*100 >= whole*int64(percent) }
