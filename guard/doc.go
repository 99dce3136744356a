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
// # Tried and left
//
//   - A library that is loaded into each process (LD_PRELOAD) and counts its
//     allocations: static binaries, other loaders and a variable that the process
//     itself can clear go past it, and a library that intercepts CUDA has to follow
//     each release of it. The guard reads what the driver counts. The price is that
//     memory is taken first and terminated after.
//   - A signal to a PID: between the sample and the signal the number can come to be
//     another process's. The process is opened as a pidfd and looked at again before
//     it is signaled (guard/proc).
//   - The newest process first: it is often the small one, a data loader, and its end
//     brings nothing back within the limit. The one that uses most goes first, so
//     that one termination is enough (victim.go).
//   - One sample as proof: a training step frees and allocates within milliseconds,
//     and a list may be older than the total beside it.
//
// The package imports the standard library and guard/limits. Access to NVML, /proc
// and the MPS daemon is in guard/gpu, guard/proc and guard/mps.
package guard
