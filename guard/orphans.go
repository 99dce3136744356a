package guard

import (
	"slices"
	"time"
)

// orphanPeriod is how long memory must be nobody's before that is reported: a
// driver may take a while to release a process's memory.
const orphanPeriod = 5 * time.Second

// evaluateOrphans reports once the memory that is nobody's, and returns all of it.
// A process that was terminated may still be listed.
func evaluateOrphans(s State, readings []reading) ([]Orphaned, []Event) {
	all := slices.DeleteFunc(slices.Clone(s.Orphaned), func(o Orphaned) bool {
		return len(readings) > 0 && !slices.ContainsFunc(readings, func(r reading) bool { return r.ID == o.Device })
	})
	var events []Event
	for _, r := range readings {
		if !r.trusted { // its processes may be of another namespace, which nobody here can name
			continue
		}
		all = slices.DeleteFunc(all, func(o Orphaned) bool {
			return o.Device == r.ID && !slices.ContainsFunc(r.Orphans, func(p Orphan) bool { return p.PID == o.PID })
		})
		for _, p := range r.Orphans {
			if p.UsedBytes == 0 || s.pendingRelease(r.ID, p.PID) {
				continue
			}
			o, known := find(all, Orphaned{Device: r.ID, Orphan: p}, byNumber)
			if !known {
				o.Since = r.Listed
			}
			if o.Orphan = p; !o.Reported && r.Listed.Sub(o.Since) >= orphanPeriod {
				o.Reported = true
				events = append(events, o.event())
			}
			all = put(all, o, byNumber)
		}
	}
	return all, events
}

func (o Orphaned) event() Event {
	return Event{Kind: OfNobody, Device: o.Device, Process: o.Process, UsedBytes: o.UsedBytes, Reason: o.Reason}
}
