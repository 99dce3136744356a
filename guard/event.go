package guard

import (
	"log/slog"
	"time"
)

// EventKind is the subject of an Event.
type EventKind string

// The kinds of events.
const (
	NearLimit         EventKind = "near limit"                 // usage came to the warning threshold
	BelowLimit        EventKind = "below limit"                // and is clearly below it again
	TerminationResult EventKind = "termination result"         // Outcome of the order in progress
	NotTerminated     EventKind = "not terminated"             // over the limit and left running, Reason has the cause
	OOMWithinSlice    EventKind = "out of memory within slice" // a process exited on a full device, within its slice
	Unmanaged         EventKind = "unmanaged container"        // a container without a slice uses a device
	Unnamed           EventKind = "unnamed container"          // a container without a name uses a device
	OfNobody          EventKind = "memory of nobody"           // in use, and charged to nobody; Reason has the cause
	MemoryNotReleased EventKind = "memory not released"        // a terminated process is still listed on its device
	NotEnforcing      EventKind = "not enforcing"              // a device cannot be relied on, Reason has the cause
	Enforcing         EventKind = "enforcing again"            // and can again
)

// Event is one thing to report.
type Event struct {
	Kind       EventKind
	Container  string
	Device     string
	Process    Process
	UsedBytes  int64
	LimitBytes int64 // the effective limit
	SliceBytes int64
	Beyond     bool // one more device than the container has
	OverFor    time.Duration
	Reason     string
	Outcome    *Outcome // of a TerminationResult; nil: another kind
}

// ForOwner reports whether the pod's owner is to read the message as an Event of
// the pod, beside the log.
func (e Event) ForOwner() bool {
	switch e.Kind {
	case BelowLimit:
		return false
	case TerminationResult:
		return e.Outcome.Result != Gone
	}
	return true
}

// Level returns the level of the event in a log.
func (e Event) Level() slog.Level {
	if e.ForOwner() && e.Kind != Enforcing {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// notTerminated reports why a container over its limit is not terminated.
func (u Usage) notTerminated(reason string) Event {
	return Event{Kind: NotTerminated, Container: u.Container, Device: u.Device, UsedBytes: u.UsedBytes, LimitBytes: u.LimitBytes,
		SliceBytes: u.SliceBytes, Beyond: u.Beyond, OverFor: u.OverFor, Reason: reason}
}
