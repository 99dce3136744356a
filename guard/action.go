package guard

import (
	"fmt"
	"time"
)

// Kind is what an Action asks for or reports.
type Kind string

const (
	Confirm      Kind = "confirm"       // look again at once, with a new list
	EndProcess   Kind = "end process"   // carry out Order
	EndContainer Kind = "end container" // carry out Order on every process of the container

	Warn     Kind = "warn"     // the container came to its soft mark
	Eased    Kind = "eased"    // and is clearly below again
	Report   Kind = "report"   // Outcome of the order in hand
	Observe  Kind = "observe"  // past its wall and left alone, Reason says why
	Innocent Kind = "innocent" // a process went away on a full device, within its slice
	Stray    Kind = "stray"    // a container without a slice uses a device
	Lingers  Kind = "lingers"  // an ended process still shows on its device
	Blind    Kind = "blind"    // a device cannot be relied on, Reason says why
	Sighted  Kind = "sighted"  // and can again
)

// Action is one thing to do or to say.
type Action struct {
	Kind       Kind
	Container  string
	Device     string
	Process    Process
	HeldBytes  int64
	WallBytes  int64
	SliceBytes int64
	Reason     string
	Order      Order
	Outcome    Outcome
	DryRun     bool
}

// Telling reports whether the owner of the pod is to read the action's sentence
// as an Event, beside the log.
func (a Action) Telling() bool {
	switch a.Kind {
	case Confirm, EndProcess, EndContainer, Eased:
		return false
	case Report:
		return a.Outcome.Result != Gone
	}
	return true
}

// Sentence returns what the action tells the pod's owner: the same words in log,
// Event and termination message.
func (a Action) Sentence() string {
	switch a.Kind {
	case Warn:
		return fmt.Sprintf("%s holds %s of its %s slice%s: %s", a.Container, Size(a.HeldBytes), Size(a.SliceBytes), on(a.Device), a.Reason)
	case Eased:
		return fmt.Sprintf("%s is back at %s of its %s slice%s", a.Container, Size(a.HeldBytes), Size(a.SliceBytes), on(a.Device))
	case Confirm:
		return fmt.Sprintf("%s holds %s%s: looking again before a process is ended", a.Container, share(a.HeldBytes, a.WallBytes), on(a.Device))
	case EndProcess, EndContainer:
		return fmt.Sprintf("gpuslice is %s", a.Order.does(a.DryRun, "ending"))
	case Report:
		return a.Outcome.sentence()
	case Observe:
		return fmt.Sprintf("%s holds %s%s and is left alone: %s", a.Container, share(a.HeldBytes, a.WallBytes), on(a.Device), a.Reason)
	case Innocent:
		return fmt.Sprintf("%s went away in %s while the device was full%s: it held %s of its %s slice, so the shortage was not of its making",
			name(a.Process), a.Container, on(a.Device), Size(a.HeldBytes), Size(a.SliceBytes))
	case Stray:
		return fmt.Sprintf("%s in %s holds %s%s without a slice: nothing holds it back", name(a.Process), a.Container, Size(a.HeldBytes), on(a.Device))
	case Lingers:
		return fmt.Sprintf("%s of %s has exited and its memory is still held%s: another process may share it", name(a.Process), a.Container, on(a.Device))
	case Blind:
		return fmt.Sprintf("gpuslice cannot hold this pod to its slice%s: %s", on(a.Device), a.Reason)
	case Sighted:
		return fmt.Sprintf("gpuslice can hold this pod to its slice again%s", on(a.Device))
	}
	return string(a.Kind)
}

// does is what the order does, as "ended python (pid 214, 9.1Gi) in trainer ...".
func (o Order) does(dryRun bool, verb string) string {
	whom := name(o.Process)
	if o.Whole {
		whom = "every process"
	}
	lasting := ""
	if o.Over >= 50*time.Millisecond {
		lasting = " for " + Span(o.Over)
	}
	if dryRun {
		verb = "not " + verb + " (dry run)"
	}
	return fmt.Sprintf("%s %s in %s: %s%s%s", verb, whom, o.Container, share(o.HeldBytes, o.WallBytes), on(o.Device), lasting)
}

func (out Outcome) sentence() string {
	o := out.Order
	switch out.Result {
	case Ended:
		return "gpuslice " + o.does(false, "ended")
	case Spared:
		return "gpuslice would have " + o.does(false, "ended") + "; this is a dry run"
	case Gone:
		return "gpuslice left " + o.does(false, "alone") + "; " + out.Reason
	}
	return "gpuslice could not have " + o.does(false, "ended") + "; " + out.Reason
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
	return fmt.Sprintf("%s (pid %d, %s)", command, p.PID, Size(p.UsedBytes))
}

func on(device string) string {
	if device == "" {
		return ""
	}
	return " on " + device
}

// Sentence returns what the order tells the tenant it ends.
func (o Order) Sentence() string { return "gpuslice " + o.does(false, "ended") }
