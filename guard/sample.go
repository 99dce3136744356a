package guard

import "time"

// Sample is one look at every visible device.
type Sample struct {
	Taken   time.Time // when the look was over
	Fault   string    // why nothing could be read at all; empty: Devices stand
	Devices []Device
	Outcome *Outcome // of the ending that was in hand, once
}

// Device is what one look found on one device, or one MIG instance.
type Device struct {
	ID         string    // UUID, stable over the guard's life
	Listed     time.Time // when the processes were listed; a look may repeat an older list
	TotalBytes int64     // 0: the device does not say
	UsedBytes  int64     // by all tenants; 0: the device does not say
	Fault      string    // why its processes cannot be relied on; empty: they can
	Processes  []Process // each PID once
	Charges    []Charge  // the driver's own figure per container, where it keeps one
}

// Process is one process that a device lists.
type Process struct {
	PID       int    // in the guard's PID namespace
	Start     uint64 // start time in clock ticks since boot; with PID the identity
	Container string // its container's name; empty: cannot be told
	Command   string
	UsedBytes int64
	Known     bool // UsedBytes is a figure, not a blank of the driver
	MPS       bool // it may be a client of an MPS daemon
	Protected bool // never to be signalled: PID 1, the guard itself
}

// same reports whether p and q are one process: a PID alone is reused.
func (p Process) same(q Process) bool { return p.PID == q.PID && p.Start == q.Start }

// Charge is what the driver charges to a container's cgroup on one device.
type Charge struct {
	Container  string
	UsedBytes  int64
	LimitBytes int64 // 0: the driver holds no limit
}

// Order is one ending that Step asks for.
type Order struct {
	Container string
	Device    string
	Process   Process // the victim; zero when the whole container goes
	Whole     bool    // every process of the container
	HeldBytes int64
	WallBytes int64
	Over      time.Duration // how long the container was past its wall
	MPS       bool          // what it names may be clients of an MPS daemon
	Alone     bool          // the devices list no process of the pod beside what it names
}

// Result says what came of an Order.
type Result string

const (
	Ended    Result = "ended"    // the process, or every process of the container, has exited
	Gone     Result = "gone"     // it had exited, or was no longer over: nothing was signalled
	Spared   Result = "spared"   // dry run: nothing was signalled
	Observed Result = "observed" // it cannot be ended safely, and policy says to leave it
	Refused  Result = "refused"  // the kernel did not allow it
	Stuck    Result = "stuck"    // signalled, and did not exit in time
)

// Results returns every Result.
func Results() []Result { return []Result{Ended, Gone, Spared, Observed, Refused, Stuck} }

// counts reports whether the result is an ending that is counted and rested
// after.
func (r Result) counts() bool { return r == Ended || r == Spared || r == Stuck }

// Outcome is what came of an Order.
type Outcome struct {
	Order  Order
	Result Result
	Signal string    // the last one sent, as "SIGKILL"; empty: none
	Reason string    // for every result but Ended
	At     time.Time // when it was settled
}
