package clock

import "time"

// drift bounds by how much a clock is off after a second without an answer.
const drift = time.Second / 1000

// window is the result of one answer: at the local time at, the API server's clock was between earliest and latest.
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
	local := now.Round(0).Sub(w.at.Round(0)) // without the monotonic reading
	return w.passed(now, local, now.Sub(w.at))
}

// passed is the window after this much time by the local time and by the monotonic clock. The two differ where the local
// time was set or the machine was suspended, and then either may be right.
func (w window) passed(now time.Time, local, monotonic time.Duration) window {
	least, most := min(local, monotonic), max(local, monotonic)
	off := time.Duration(most.Abs().Seconds() * float64(drift))
	return window{at: now, earliest: w.earliest.Add(least - off), latest: w.latest.Add(most + off)}
}

// within narrows w by the window before. If the two exclude each other, a clock was set, or another API server
// answered: w alone counts.
func (w window) within(before window) window {
	if before.at.IsZero() {
		return w
	}
	before = before.after(w.at)
	both := w
	if before.earliest.After(w.earliest) {
		both.earliest = before.earliest
	}
	if before.latest.Before(w.latest) {
		both.latest = before.latest
	}
	if both.latest.Before(both.earliest) {
		return w
	}
	return both
}
