package guard

import (
	"log/slog"
	"time"
)

// OrderKind is the kind of an Order.
type OrderKind string

// The kinds of orders.
const (
	Confirm            OrderKind = "confirm" // sample again at once, with a new list
	TerminateProcess   OrderKind = "terminate process"
	TerminateContainer OrderKind = "terminate container" // every process of it
)

// Order is the action that Step wants for a container that is over its limit on a
// device, or idle.
type Order struct {
	Kind       OrderKind
	Container  string
	Device     string
	Process    Process // the victim; zero unless Kind is TerminateProcess
	UsedBytes  int64
	LimitBytes int64 // the effective limit
	SliceBytes int64
	Beyond     bool          // one more device than the container has
	OverFor    time.Duration // how long the container was over its limit
	MPS        bool          // its processes may be clients of an MPS daemon
	Alone      bool          // the devices list no other process of the pod
	DryRun     bool          // nothing will be signaled
	Idle       Idle          // the container is idle; zero: it is over its limit
}

// Level returns the level of the order in a log.
func (o Order) Level() slog.Level {
	if o.Kind == Confirm {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func (o Order) forIdleness() bool { return !o.Idle.Since.IsZero() }

// Result is the result of an Order.
type Result string

// The results.
const (
	Terminated Result = "terminated" // the process, or every process of the container, has exited
	Gone       Result = "gone"       // it had exited, or no sample after it was acquired called for the order: nothing was signaled
	DryRun     Result = "dry-run"    // nothing was signaled
	Skipped    Result = "skipped"    // it cannot be terminated safely, and the policy leaves it
	Denied     Result = "denied"     // the kernel did not allow the signal
	TimedOut   Result = "timed-out"  // it was signaled, and did not exit in time
)

// Results returns every Result.
func Results() []Result { return []Result{Terminated, Gone, DryRun, Skipped, Denied, TimedOut} }

// counts reports whether the result counts towards MaxTerminations.
func (r Result) counts() bool { return r == Terminated || r == DryRun || r == TimedOut }

// Outcome is the outcome of an Order.
type Outcome struct {
	Order  Order
	Result Result
	Signal string    // the last one sent, as "SIGKILL"; empty: none
	Reason string    // for every result but Terminated
	At     time.Time // when it was known
}
