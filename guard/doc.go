// Package guard enforces a pod's slices: it terminates a process of a container
// that uses more GPU memory than its slice, in the way that harms its neighbors
// least, and reports why.
//
// The one idea: Step is pure. It takes a state, a sample of the devices and the
// limits, and returns the next state, at most one order and the events to
// report. Whether a process lives is decided there, and once more in withheld, on
// a sample that is taken when the process can be signaled. Both are pure, so that
// every behavior is a table test. Run is the loop around them: it samples, steps,
// reports and carries out orders, and decides nothing.
//
// Evidence rules. A reading that cannot be attributed never terminates a process:
// while a device fails, lists a process outside the pod, or lists processes and
// has a figure for none of them, the guard does not enforce there, and reports
// that. The time over a limit counts between consecutive trusted samples that show
// it, and is forgotten ten times as slowly; the container of a terminated process
// is over its limit in two samples newer than the last termination; one process is
// terminated at a time.
//
// The package imports the standard library and guard/limits. Access to NVML, /proc
// and the MPS daemon is in guard/gpu, guard/proc and guard/mps.
package guard
