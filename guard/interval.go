package guard

import (
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// How old a list of processes may be. Listing takes the driver's global lock
// (measured by others at 4.5 ms against 0.012 ms for the total), so a quiet
// device is listed rarely; a total that moved is listed whatever the age.
const (
	quietAge = 10 * time.Second
	nearAge  = time.Second
)

// Pace returns how long to wait before the next look, between the fast interval
// and the interval, and how old a list that look may repeat; 0 lists anew.
//
// The wait is half the time in which the fastest-filling container would reach
// its soft mark. A device that cannot be read is tried again with a back-off.
func Pace(s State, l limits.Limits) (wait, maxAge time.Duration) {
	wait, maxAge = l.Interval, quietAge
	for _, sensor := range s.Sensors {
		if sensor.Bad > 0 {
			wait = min(wait, l.FastInterval<<min(sensor.Bad-1, 10))
			maxAge = 0
		}
	}
	for _, w := range s.Watches {
		switch {
		case !w.Over.IsZero() && w.Said == "":
			return l.FastInterval, 0
		case w.High > 0:
			wait, maxAge = l.FastInterval, min(maxAge, nearAge)
		case w.FillRate > 0:
			wait = min(wait, halfWay(w, l))
		}
	}
	return max(wait, l.FastInterval), maxAge
}

// halfWay is half the time in which the container comes to its soft mark.
func halfWay(w Watch, l limits.Limits) time.Duration {
	c, _ := l.Container(w.Container)
	room := float64(c.SliceBytes)*float64(l.WarnPercent)/100 - float64(w.HeldBytes)
	seconds := room / w.FillRate / 2
	if seconds >= l.Interval.Seconds() {
		return l.Interval
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
}
