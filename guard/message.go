package guard

import (
	"fmt"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// Message returns the text for the pod's owner: the same words in log, Event and
// termination message.
func (e Event) Message() string {
	switch e.Kind {
	case NearLimit:
		return fmt.Sprintf("%s uses %s of its %s slice%s: %s", e.Container, FormatBytes(e.UsedBytes),
			FormatBytes(e.SliceBytes), on(e.Device), e.Reason)
	case BelowLimit:
		return fmt.Sprintf("%s is back at %s of its %s slice%s", e.Container, FormatBytes(e.UsedBytes), FormatBytes(e.SliceBytes), on(e.Device))
	case TerminationResult:
		return e.Outcome.message()
	case NotTerminated:
		return fmt.Sprintf("%s uses %s%s and is not terminated: %s", e.Container,
			share(e.UsedBytes, e.LimitBytes), on(e.Device)+beyond(e.Beyond), e.Reason)
	case OOMWithinSlice:
		return fmt.Sprintf("%s in %s exited while the device was full%s: it used %s of its %s slice, so it did not cause the shortage",
			name(e.Process), e.Container, on(e.Device), FormatBytes(e.UsedBytes), FormatBytes(e.SliceBytes))
	case Unmanaged:
		return fmt.Sprintf("%s in %s uses %s%s without a slice: it is held to what the pod's slices leave",
			name(e.Process), e.Container, FormatBytes(e.UsedBytes), on(e.Device))
	case Unnamed:
		return fmt.Sprintf("%s uses %s%s in %s: the mounts of its container do not tell the name, so it is held to what the pod's slices leave",
			name(e.Process), FormatBytes(e.UsedBytes), on(e.Device), e.Container)
	case OfNobody:
		return fmt.Sprintf("%s in use%s is nobody's: %s", FormatBytes(e.UsedBytes), on(e.Device), e.Reason)
	case MemoryNotReleased:
		return fmt.Sprintf("%s of %s has exited and its memory is still in use%s: another process may share it",
			name(e.Process), e.Container, on(e.Device))
	case NotEnforcing:
		return fmt.Sprintf("gpuslice cannot enforce this pod's slice%s: %s", on(e.Device), e.Reason)
	case Enforcing:
		return fmt.Sprintf("gpuslice enforces this pod's slice again%s", on(e.Device))
	}
	return string(e.Kind)
}

// Message describes the guard's next action.
func (o Order) Message() string {
	switch {
	case o.Kind == Confirm:
		return fmt.Sprintf("%s uses %s%s: sampling again before a process is terminated",
			o.Container, share(o.UsedBytes, o.LimitBytes), on(o.Device)+beyond(o.Beyond))
	case o.DryRun:
		return "gpuslice is " + o.describe("not terminating (dry run)")
	}
	return "gpuslice is " + o.describe("terminating")
}

// TenantMessage returns the terminated container's termination message.
func (o Order) TenantMessage() string { return "gpuslice " + o.describe("terminated") }

// describe describes the order, as "terminated python (pid 214, 9.1Gi) in trainer:
// 9.1Gi of 8Gi on gpu0 for 3.2s".
func (o Order) describe(verb string) string {
	victim := name(o.Process)
	if o.Kind == TerminateContainer {
		victim = "every process"
	}
	if o.forIdleness() {
		return fmt.Sprintf("%s %s in %s: nothing of %s ran on a GPU for %s, since %s, and policy idle.terminate allows no more",
			verb, victim, o.Container,
			o.Container, FormatPeriod(o.Idle.For), o.Idle.Since.UTC().Format(time.RFC3339))
	}
	lasting := ""
	if o.OverFor >= 50*time.Millisecond {
		lasting = " for " + FormatDuration(o.OverFor)
	}
	return fmt.Sprintf("%s %s in %s: %s%s%s", verb, victim, o.Container, share(o.UsedBytes, o.LimitBytes),
		on(o.Device), lasting+beyond(o.Beyond))
}

func (out Outcome) message() string {
	switch out.Result {
	case Terminated:
		return "gpuslice " + out.Order.describe("terminated")
	case DryRun:
		return "gpuslice " + out.Order.describe("would have terminated") + "; this is a dry run"
	case Gone:
		return "gpuslice " + out.Order.describe("did not terminate") + "; " + out.Reason
	}
	return "gpuslice " + out.Order.describe("could not terminate") + "; " + out.Reason
}

// consequence returns the consequence of further use for a container.
func consequence(l limits.Limits, c limits.Container, limitBytes int64) string {
	burst := l.Act == limits.ActPressure && c.LimitBytes > c.SliceBytes
	switch {
	case burst && limitBytes == c.LimitBytes:
		return fmt.Sprintf("above %s a process is terminated when the device is nearly full, above %s always",
			FormatBytes(c.SliceBytes), FormatBytes(c.LimitBytes))
	case l.Grace >= time.Second:
		return fmt.Sprintf("a process is terminated once the container uses more than %s for %s", FormatBytes(limitBytes), l.Grace)
	}
	return fmt.Sprintf("a process is terminated once the container uses more than %s", FormatBytes(limitBytes))
}

// name names a process as its owner knows it.
func name(p Process) string {
	command := p.Command
	if command == "" {
		command = "a process"
	}
	if p.UsedBytes <= 0 {
		return fmt.Sprintf("%s (pid %d)", command, p.PID)
	}
	return fmt.Sprintf("%s (pid %d, %s)", command, p.PID, FormatBytes(p.UsedBytes))
}

func beyond(gpus bool) string {
	if !gpus {
		return ""
	}
	return ", a GPU more than it was given"
}

func on(device string) string {
	if device == "" {
		return ""
	}
	return " on " + device
}
