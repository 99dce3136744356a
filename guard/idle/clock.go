package idle

import (
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// clock is how long nothing has run in one container's slice.
type clock struct {
	idleSince  time.Time     // nothing ran since then; zero: something did, or may have
	quietSince time.Time     // nor did anything that the driver cannot distinguish from nothing
	notifiedAt time.Time     // when its owner last got a notice
	terminate  bool          // its processes are to be terminated
	uses       map[use]int64 // bytes, at the last reading
}

// interval is the time between two readings in which nothing ran.
type interval struct {
	from, to time.Time
	still    bool // nor did anything that the driver cannot distinguish from nothing
}

// use is a process on a device.
type use struct {
	device string
	pid    int
	start  uint64
}

// advance adds an interval. It reports whether the owner is to get a notice.
// Processes are terminated only after a notice that is no older than the time for
// which they are.
func (c clock) advance(i interval, l limits.Limits) (_ clock, notify bool) {
	if c.idleSince.IsZero() {
		c.idleSince = i.from
	}
	switch {
	case !i.still:
		c.quietSince = time.Time{}
	case c.quietSince.IsZero():
		c.quietSince = i.from
	}
	terminates := l.IdleTerminate > 0 && i.still
	stale := c.notifiedAt.Before(c.quietSince) // the notice was about an earlier time
	c.terminate = terminates && !stale && i.to.Sub(c.quietSince) >= l.IdleTerminate
	if period := l.IdleNotice(); period > 0 {
		notify = c.notifiedAt.IsZero() && i.to.Sub(c.idleSince) >= period || terminates && stale && i.to.Sub(c.quietSince) >= period
	}
	if notify {
		c.notifiedAt = i.to
	}
	return c, notify
}

// grew reports whether a process has come, or uses something else than before: one
// that loads a model runs nothing yet.
func grew(before, now map[use]int64) bool {
	for u, bytes := range now {
		if was, known := before[u]; !known || was != bytes {
			return true
		}
	}
	return false
}
