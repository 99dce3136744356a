package clock

import "time"

// drift bounds how far a clock strays in a second between two answers.
const drift = time.Second / 1000

// window is what one answer tells: at the local time at, the API server's clock was between earliest and latest.
type window struct {
	at               time.Time
	earliest, latest time.Time
}

// windowOf reads an answer. Its date, in whole seconds, was written at some time between sent and received.
func windowOf(sent, received, date time.Time) window {
	return window{at: received, earliest: date, latest: date.Add(time.Second + received.Sub(sent))}
}

// after is the window at a later local time.
func (w window) after(now time.Time) window {
	wall := now.Round(0).Sub(w.at.Round(0))
	return w.passed(now, wall, now.Sub(w.at))
}

// passed is the window after this much time by the wall clock and by the monotonic clock. The two differ where the wall
// clock was set or the machine was suspended, and then either may be right.
func (w window) passed(now time.Time, wall, monotonic time.Duration) window {
	least, most := min(wall, monotonic), max(wall, monotonic)
	strayed := time.Duration(most.Abs().Seconds() * float64(drift))
	return window{at: now, earliest: w.earliest.Add(least - strayed), latest: w.latest.Add(most + strayed)}
}

// within narrows w by what was known before. Where the two exclude each other, a clock was set, or another API server
// answered: w alone counts.
func (w window) within(before window) window {
	if before.at.IsZero() {
		return w
	}
	before = before.after(w.at)
	both := window{at: w.at, earliest: later(w.earliest, before.earliest), latest: w.latest}
	if before.latest.Before(w.latest) {
		both.latest = before.latest
	}
	if both.latest.Before(both.earliest) {
		return w
	}
	return both
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
