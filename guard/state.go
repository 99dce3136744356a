package guard

import (
	"cmp"
	"slices"
	"time"
)

// State is the state that the guard carries from one sample to the next. The zero
// value is a guard that has sampled nothing. Step never changes its
// argument.
type State struct {
	SampledAt time.Time      // of the newest sample
	Usages    []Usage        // by container and device, sorted
	Devices   []DeviceStatus // by device, sorted; "" is the sampler as a whole

	InProgress   *Order        // the termination in progress; nil: none
	OutcomeAt    time.Time     // when the outcome of the last termination was known; no older list is evidence
	Settling     bool          // OutcomeAt is followed by the settle time
	Terminations []Termination // that count, oldest first
	IdleOrdered  []Process     // of idle containers, which an order has named

	Late      string    // why the guard was late with a sample; empty: it was not, lately
	LateUntil time.Time // when that is over

	PendingRelease []PendingRelease // terminated processes whose memory has yet to be released
	Unmanaged      []string         // containers without a slice, or without a name, that were reported
	UnnamedSince   time.Time        // since when a container without a name is listed; zero: none is
	Orphaned       []Orphaned       // memory that is nobody's, by device and PID, sorted
}

// Usage is one container's usage of one device.
type Usage struct {
	Container, Device string

	MeasuredAt         time.Time // UsedBytes; zero: never
	UsedBytes          int64
	PeakBytes          int64
	ListedBytes        int64 // its processes' listed memory when list and total belonged together
	DoubleCountedBytes int64 // of it, the part that is taken to be listed twice
	SliceBytes         int64
	LimitBytes         int64   // the effective limit
	Beyond             bool    // one more device than the container has
	GrowthRate         float64 // bytes a second, 0 when it does not grow

	NearLimit  int           // trusted samples in a row at or above the warning threshold
	Warned     bool          // and not yet clearly below
	BelowSince time.Time     // since when clearly below the warning threshold
	OverSince  time.Time     // since when over the limit without a break; zero: it is not
	OverFor    time.Duration // over the limit in all, less a tenth of the time within it
	Confirming bool          // over for the grace period; the next sample decides
	Reported   string        // why it is not terminated, once that was reported
	DoubtSince time.Time     // since when it is within its limit only if memory is listed twice; zero: it is not
	Doubted    bool          // and that was reported

	Processes []Process // of the last trusted list
}

// staleAfter is how long a measurement counts as current use: some twice the
// longest interval and a hung read together.
const staleAfter = 30 * time.Second

// Stale reports whether UsedBytes was measured too long ago to be the current use.
func (u Usage) Stale(now time.Time) bool { return now.Sub(u.MeasuredAt) > staleAfter }

// DeviceStatus is how well one device can be read.
type DeviceStatus struct {
	Device          string
	Failures        int // failing readings, until three good ones in a row
	Successes       int // good readings in a row
	Unreliable      bool
	Reason          string    // of the last failing reading
	ListedAt        time.Time // of the newest list
	ConsistentBytes int64     // in use on the device when list and total last belonged together
	Consistent      []Process // the processes of all pods that it listed then
	Full            bool      // the device had no room to speak of at the last sample
}

// Termination is one that counts towards MaxTerminations.
type Termination struct {
	Container string
	At        time.Time
}

// PendingRelease is a terminated process that the device may still list.
type PendingRelease struct {
	Device   string
	Process  Process
	Deadline time.Time
}

// Orphaned is an Orphan as long as its device lists it.
type Orphaned struct {
	Device string
	Orphan
	Since    time.Time
	Reported bool
}

// mayTerminate reports whether it is time for another termination.
func (s State) mayTerminate(settle time.Duration) bool {
	return s.InProgress == nil && (!s.Settling || s.SampledAt.Sub(s.OutcomeAt) >= settle)
}

// NotEnforcing returns why the guard cannot enforce a slice, or an empty text while
// it can.
func (s State) NotEnforcing() string {
	for _, d := range s.Devices {
		if d.Unreliable {
			return d.Reason
		}
	}
	return s.Late
}

// usage returns a container's usage of a device, and whether there is one yet.
func (s State) usage(container, device string) (Usage, bool) {
	return find(s.Usages, Usage{Container: container, Device: device}, byPlace)
}

func (s State) device(id string) DeviceStatus {
	d, _ := find(s.Devices, DeviceStatus{Device: id}, byDevice)
	return d
}

// terminations counts the terminations in a container after a time.
func (s State) terminations(container string, after time.Time) int {
	n := 0
	for _, t := range s.Terminations {
		if t.Container == container && t.At.After(after) {
			n++
		}
	}
	return n
}

// pendingRelease reports whether the process on the device was terminated.
func (s State) pendingRelease(device string, pid int) bool {
	return slices.ContainsFunc(s.PendingRelease, func(r PendingRelease) bool { return r.Device == device && r.Process.PID == pid })
}

// find returns the value of a sorted list that compares equal to key, or key.
func find[T any](list []T, key T, order func(a, b T) int) (T, bool) {
	if i, found := slices.BinarySearchFunc(list, key, order); found {
		return list[i], true
	}
	return key, false
}

// put returns a copy of a sorted list in which value has replaced its equal.
func put[T any](list []T, value T, order func(a, b T) int) []T {
	list = slices.Clone(list)
	i, found := slices.BinarySearchFunc(list, value, order)
	if !found {
		return slices.Insert(list, i, value)
	}
	list[i] = value
	return list
}

func byPlace(a, b Usage) int {
	return cmp.Or(cmp.Compare(a.Container, b.Container), cmp.Compare(a.Device, b.Device))
}

func byNumber(a, b Orphaned) int {
	return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.PID, b.PID))
}

func byDevice(a, b DeviceStatus) int { return cmp.Compare(a.Device, b.Device) }
