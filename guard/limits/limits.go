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

// GuardedResource is the resource of which the agent of a node offers one for
// each pod. The check of a pod that an agent is to guard requests one, so that the
// pod starts nowhere else.
const GuardedResource = "gpuslice.dev/guarded"

// ReasonLate begins the reason of a guard that cannot enforce because its own
// samples came late, whatever the state of the device.
const ReasonLate = "the guard did not sample the devices for "

// ObservationFolder is where the webhook mounts the pod's observation into the
// guard, ObservationPath its file.
const (
	ObservationFolder = "/etc/gpuslice"
	ObservationPath   = ObservationFolder + "/observed"
)

// ShimFolder is where the check writes the shim that limits old releases of
// PyTorch, and where containers find it, on the volume ShimVolume. ShimProgram
// starts a container's command with it. ShimSize bounds the volume, which is in
// memory: a check that runs again has the program there twice for a moment.
const (
	ShimVolume  = "gpuslice-shim"
	ShimSize    = "8Mi"
	ShimFolder  = "/gpuslice/shim"
	ShimProgram = ShimFolder + "/gpuslice-exec"
)

// RecordContainer begins the name of an init container of a tenant's image, in
// which ShimProgram with RecordOption writes down, in its file of ShimFolder, the
// image's PYTHONPATH, behind the folder. Its number follows, and follows RecordFile
// too.
const (
	RecordContainer = "gpuslice-record-"
	RecordOption    = "--record"
	RecordFile      = "pythonpath-"
)

// Act is when a process of a container over its slice is terminated.
type Act string

const (
	// ActAlways terminates over the slice, whatever room the device has. LimitBytes
	// has no part in it.
	ActAlways Act = "always"
	// ActPressure terminates over the slice only while the device is nearly full,
	// and over the limit always.
	ActPressure Act = "pressure"
)

// MPSTermination is the handling of an MPS client that cannot be terminated through
// the MPS control daemon.
type MPSTermination string

const (
	// MPSTerminationObserve does not terminate the client, and reports that.
	MPSTerminationObserve MPSTermination = "observe"
	// MPSTerminationSignal signals the client. NVIDIA calls the outcome undefined: the
	// other clients of the daemon may hang or fail.
	MPSTerminationSignal MPSTermination = "signal"
)

// Escalation is the step after MaxTerminations.
type Escalation string

const (
	// EscalationContainer terminates every process of the container; the pod's
	// restart policy decides about the rest.
	EscalationContainer Escalation = "container"
	// EscalationObserve terminates nothing more in the window, and reports that.
	EscalationObserve Escalation = "observe"
)

// Limits are a guard's limits for one pod.
type Limits struct {
	Version    int         // of the contract
	Containers []Container // at least one, in the pod's order
	Act        Act

	WarnPercent     int // of the slice, from which the owner is warned
	PressurePercent int // of a device's memory in use from which it is nearly full

	Grace     time.Duration // over for longer than this before anything is terminated; 0 acts on the confirming sample
	TermGrace time.Duration // from SIGTERM to SIGKILL; 0 sends SIGKILL alone
	Settle    time.Duration // pause after a termination before the next

	Interval     time.Duration // longest pause between two samples
	FastInterval time.Duration // shortest pause, taken near the limit

	MaxTerminations    int           // of one container within TerminationsWindow before Escalation follows
	TerminationsWindow time.Duration // how long a termination counts
	Escalation         Escalation    // the step after MaxTerminations
	DryRun             bool          // decide and report everything, signal nothing
	IdleReport         time.Duration // a slice in which nothing ran for so long is reported, by agents alone; 0: none is
	IdleTerminate      time.Duration // and its processes are terminated after so long; 0: none are

	MPSTermination MPSTermination // for an MPS client that cannot be terminated through the daemon

	Node
}

// Node is the facts of the guard's node, and the plan's assumptions, as NodeVariable spells them.
type Node struct {
	MPSPipeDirectory string `json:"mpsPipeDirectory,omitempty"` // absolute; empty: no daemon is reachable
	MPSControl       string `json:"mpsControl,omitempty"`       // absolute path of nvidia-cuda-mps-control; empty: search PATH
	ExpectMPS        bool   `json:"expectMPS,omitempty"`        // the check container fails when the daemon does not answer

	MinDeviceBytes int64  `json:"minDeviceBytes,omitempty"` // smallest device memory the plan relies on; 0: not checked
	MaxDeviceBytes int64  `json:"maxDeviceBytes,omitempty"` // largest device memory the plan relies on; 0: not checked
	OneDevice      bool   `json:"oneDevice,omitempty"`      // several devices fail the check: the slices are parts of one
	MinDriver      string `json:"minDriver,omitempty"`      // oldest driver the plan relies on, as "565.57.01"; empty: not checked

	MetricsPort int `json:"metricsPort,omitempty"` // 0: no metrics are served
}

// Container is one container's share of each of its GPUs.
type Container struct {
	Name       string `json:"name"`
	SliceBytes int64  `json:"slice"` // per GPU; compared with the sum over the container's processes
	LimitBytes int64  `json:"limit"` // per GPU, at least SliceBytes; the limit of a burst under ActPressure
	GPUs       int    `json:"gpus"`  // how many devices it has
}

// Default returns a Limits with every setting at its default and no container.
func Default() Limits {
	return Limits{
		Version:            Version,
		Act:                ActAlways,
		WarnPercent:        95,
		PressurePercent:    95,
		Grace:              2 * time.Second,
		TermGrace:          5 * time.Second,
		Settle:             15 * time.Second,
		Interval:           2 * time.Second,
		FastInterval:       250 * time.Millisecond,
		MaxTerminations:    3,
		TerminationsWindow: 5 * time.Minute,
		Escalation:         EscalationContainer,
		MPSTermination:     MPSTerminationObserve,
	}
}

// IdleNotice returns after how long the owner of a slice gets an Event that nothing runs
// in it; 0: never. Nothing is terminated without.
func (l Limits) IdleNotice() time.Duration {
	if l.IdleReport == 0 {
		return l.IdleTerminate / 2
	}
	return l.IdleReport
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
