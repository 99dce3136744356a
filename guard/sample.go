package guard

import (
	"slices"
	"time"
)

// Sample is one reading of every visible device.
type Sample struct {
	Taken   time.Time // when the reading was complete
	Fault   string    // why nothing could be read at all; empty: Devices are valid
	Devices []Device
	Outcome *Outcome // of the termination that was in progress, once
	Idle    []Idle   // containers whose processes are to be terminated for want of use
	ByAgent bool     // for all pods of a node: the agent reports that it came late
}

// Idle is a container in which nothing has run on a device for as long as its
// policy lets it.
type Idle struct {
	Container string
	Since     time.Time // nothing has run since then; with Container the identity
	For       time.Duration
}

func (i Idle) same(j Idle) bool { return i.Container == j.Container && i.Since.Equal(j.Since) }

// Device is the result of one sample on one device, or one MIG instance.
type Device struct {
	ID            string    // UUID, stable over the guard's life
	Model         string    // as the driver names it; empty: it does not
	Listed        time.Time // when the processes were listed; a sample may repeat an older list
	AsOf          uint64    // when that began, as start times count it: who began later is not listed
	TotalBytes    int64     // 0: the device does not report it
	UsedBytes     int64     // by all tenants; 0: the device does not report it
	Moving        bool      // UsedBytes moved while the processes were listed
	Fault         string    // why its processes cannot be relied on; empty: they can
	Processes     []Process // each PID once
	Everyone      []Process // of all pods, where the sampler sees others; nil: Processes are all
	Orphans       []Orphan  // of the pod, or perhaps of it
	DoubleCounted int64     // the part of other pods' memory that is taken to be listed twice
	Charges       []Charge  // the driver's own figure per container, where it keeps one
}

// Process is one process that a device lists.
type Process struct {
	PID       int    // in the guard's PID namespace
	Start     uint64 // start time in clock ticks since boot; with PID the identity
	Container string // its container's name; empty: unknown
	Command   string
	UsedBytes int64
	Known     bool // UsedBytes is a figure, not a blank of the driver
	MPS       bool // it may be a client of an MPS daemon
	Protected bool // never to be signaled: PID 1, the guard itself
	Unread    bool // it may be of any pod: its container is not known
}

// Orphan is a process that a device lists, and that is charged to nobody.
type Orphan struct {
	Process
	Reason string // why
}

// same reports whether p and q are one process: a PID alone is reused.
func (p Process) same(q Process) bool { return p.PID == q.PID && p.Start == q.Start }

// terminable reports whether the process uses memory and may be signaled.
func (p Process) terminable() bool {
	return p.Known && p.UsedBytes > 0 && !p.Protected && p.PID > 1
}

func contains(ps []Process, pid int) bool {
	return slices.ContainsFunc(ps, func(p Process) bool { return p.PID == pid })
}

func processesOf(container string, ps []Process) []Process {
	return slices.DeleteFunc(slices.Clone(ps), func(p Process) bool { return p.Container != container })
}

// Charge is the driver's charge to a container's cgroup on one device.
type Charge struct {
	Container  string
	UsedBytes  int64
	LimitBytes int64 // 0: the driver enforces no limit
}

// Utilization is how busy one process kept a device. It carries a PID for a
// metric's sake: a driver may hand out another namespace's PIDs here, so that it
// is no Process and nothing can be signaled by it.
type Utilization struct {
	Device  string
	PID     int
	Percent int // of the multiprocessors
}

// Activity is the work of one device since the last reading.
type Activity struct {
	Device string
	// Complete: every process that ran is in Ran. The device reports it for each
	// process, and lists each of those that it reports.
	Complete     bool
	Ran          map[int]bool // by PID
	Utilizations []Utilization
	// Sampled are the processes of which the driver has something to say, by PID: 0
	// percent of one that ran for a moment, too.
	Sampled map[int]bool
}
