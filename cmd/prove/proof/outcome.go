package proof

import (
	"fmt"
	"time"
)

// Observed is the observation of one attempt. The amounts are of all its processes.
type Observed struct {
	SliceBytes, TargetBytes, ReachedBytes int64
	// Passed is when more than the slice was held, Ended when the first process exited after that. The zero time: never.
	Passed, Ended time.Time
	// Signal terminated that process; 0: none did.
	Signal int
	// OutOfMemory and Unavailable are answers of the driver: no more memory, a device that takes no such client. Terminated: an
	// MPS daemon terminated the client. Failure is any other error.
	OutOfMemory, Unavailable, Terminated bool
	Failure                              string
	// OutOfHostMemory reports whether the kernel killed a process of the container for want of memory of its own.
	OutOfHostMemory bool
	// KillsUnknown reports whether that could not be read: a signal 9 may then be the kernel's.
	KillsUnknown bool
	// FreeBytes is the device's free memory when the driver denied more; negative:
	// unknown. NeedBytes were requested.
	FreeBytes, NeedBytes int64
	// TotalBytes is the device's or instance's memory by NVML (0: unknown), LimitBytes the driver's own limit of the cgroup
	// (0: none).
	TotalBytes, LimitBytes int64
	// Client reports whether the process was an MPS daemon's client.
	Client bool
	// Watched is how long it was waited for an end.
	Watched time.Duration
}

// Attempt is the conclusion from the observation.
func (o Observed) Attempt(w Way) Attempt {
	a := Attempt{Way: w, ReachedBytes: o.ReachedBytes}
	switch {
	case o.OutOfHostMemory:
		a.Detail = "the container has too little memory of the host: the kernel ended the program"
	case o.Unavailable:
		a.Held, a.Detail = o.unavailable(w)
	case o.OutOfMemory:
		a.Held, a.Detail = o.denied()
	case o.Failure != "":
		a.Detail = o.Failure
	case o.Signal == signalKill && o.KillsUnknown:
		a.Detail = "ended by signal 9, which may be the kernel's for want of host memory: its kills cannot be read"
	case o.ended():
		a.Held, a.ReactionMilliseconds = Guard, max(o.Ended.Sub(o.Passed).Milliseconds(), 1)
		a.Detail = fmt.Sprintf("ended by signal %d", o.Signal)
		if o.Terminated {
			a.Detail = "ended by its MPS daemon"
		}
	case o.Signal != 0:
		a.Detail = fmt.Sprintf("ended by signal %d before it was past its slice", o.Signal)
	case w == Managed && o.TotalBytes > 0 && o.ReachedBytes > o.TotalBytes:
		a.Held, a.Detail = Hardware, "the device has no more: the rest lies in memory of the host"
	case o.Passed.IsZero():
		a.Detail = "the program did not get past its slice"
	default:
		a.Held, a.Detail = Nothing, fmt.Sprintf("held more than the slice for %s", o.Watched)
	}
	return a
}

// Signals by which a guard terminates a process.
const (
	signalKill = 9
	signalTerm = 15
)

func (o Observed) ended() bool {
	return !o.Passed.IsZero() && !o.Ended.Before(o.Passed) && (o.Terminated || o.Signal == signalKill || o.Signal == signalTerm)
}

// unavailable is the conclusion if there was no context: the daemon's doing only if
// the program was no client of it.
func (o Observed) unavailable(w Way) (Holder, string) {
	if w == MPSUnset || w == MPSElsewhere {
		return MPS, "the device takes clients of the daemon alone"
	}
	return "", "the device gave no context: " + o.Failure
}

// denied is the conclusion if the driver denied memory: a limit only if the device
// had enough left.
func (o Observed) denied() (Holder, string) {
	switch {
	case o.TotalBytes > 0 && o.TotalBytes < o.TargetBytes:
		return Hardware, "the device has no more"
	case o.FreeBytes < 0:
		return "", "out of memory, and what the device had left is unknown"
	case o.FreeBytes < o.NeedBytes:
		return "", "the device was full, with other programs on it"
	case o.ReachedBytes > o.SliceBytes:
		return Nothing, "a limit, which is larger than the slice"
	case o.LimitBytes > 0:
		return Driver, "out of memory by the driver's limit of the container"
	case o.Client:
		return MPS, "out of memory by the daemon's limit"
	}
	return Unknown, "out of memory, by a limit that is neither the driver's nor an MPS daemon's"
}
