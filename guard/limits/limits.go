package limits

import "time"

// Version is the version of the contract that this package writes and the
// newest it understands.
const Version = 1

// GuardContainer and CheckContainer are the names of the two containers the
// webhook adds: the native sidecar, and the init container before it.
const (
	GuardContainer = "gpuslice-guard"
	CheckContainer = "gpuslice-check"
)

// Act says when a container that is past its slice is ended.
type Act string

const (
	// ActAlways ends a container that is past its slice, whatever room the
	// device has. LimitBytes has no part in it.
	ActAlways Act = "always"
	// ActPressure ends a container past its slice only while the device is
	// nearly full, and one past its limit always.
	ActPressure Act = "pressure"
)

// Ending says what becomes of an MPS client that cannot be ended through the
// MPS control daemon.
type Ending string

const (
	// EndingObserve leaves the client alone and says so.
	EndingObserve Ending = "observe"
	// EndingSignal signals the client. NVIDIA calls the outcome undefined: the
	// other clients of the daemon may hang or fail.
	EndingSignal Ending = "signal"
)

// Last says what follows when a container has been ended MaxEnds times.
type Last string

const (
	// LastContainer ends every process of the container; what follows is the
	// pod's restart policy.
	LastContainer Last = "container"
	// LastObserve ends nothing more in the window and reports.
	LastObserve Last = "observe"
)

// Limits is what a guard holds one pod to.
type Limits struct {
	Version    int         // of the contract
	Containers []Container // at least one, in the pod's order
	Act        Act

	WarnPercent     int // of the wall (slice or limit) at which the owner is warned
	PressurePercent int // of a device's memory in use from which it is nearly full

	Grace     time.Duration // over for longer than this before anything is ended; 0 acts on the confirming look
	TermGrace time.Duration // from SIGTERM to SIGKILL; 0 sends SIGKILL alone
	Settle    time.Duration // rest after an ending before the next

	Interval     time.Duration // longest pause between two looks
	FastInterval time.Duration // shortest pause, taken near the limit

	MaxEnds    int           // endings of one container within EndsWindow before Terminate follows
	EndsWindow time.Duration // how long an ending counts
	Terminate  Last          // what follows MaxEnds
	DryRun     bool          // decide and report everything, signal nothing

	MPSEnding        Ending // for an MPS client that cannot be ended through the daemon
	MPSPipeDirectory string // absolute; empty: no daemon is reachable
	MPSControl       string // absolute path of nvidia-cuda-mps-control; empty: search PATH
	ExpectMPS        bool   // the check container fails when the daemon does not answer

	MinDeviceBytes int64  // smallest device memory the plan relies on; 0: not checked
	MaxDeviceBytes int64  // largest device memory the plan relies on; 0: not checked
	MinDriver      string // oldest driver the plan relies on, as "565.57.01"; empty: not checked

	MetricsPort int // 0: no metrics are served
}

// Container is one container's share of each of its GPUs.
type Container struct {
	Name       string `json:"name"`
	SliceBytes int64  `json:"slice"` // per GPU; the sum over the container's processes is held against it
	LimitBytes int64  `json:"limit"` // per GPU, at least SliceBytes; what a burst may reach under ActPressure
	GPUs       int    `json:"gpus"`  // how many devices it was given
}

// Default returns a Limits with every setting at its default and no container.
func Default() Limits {
	return Limits{
		Version:         Version,
		Act:             ActAlways,
		WarnPercent:     95,
		PressurePercent: 95,
		Grace:           2 * time.Second,
		TermGrace:       5 * time.Second,
		Settle:          15 * time.Second,
		Interval:        2 * time.Second,
		FastInterval:    250 * time.Millisecond,
		MaxEnds:         3,
		EndsWindow:      5 * time.Minute,
		Terminate:       LastContainer,
		MPSEnding:       EndingObserve,
	}
}

// Container returns the share of the container with that name, and whether
// there is one.
func (l Limits) Container(name string) (Container, bool) {
	for _, c := range l.Containers {
		if c.Name == name {
			return c, true
		}
	}
	return Container{}, false
}
