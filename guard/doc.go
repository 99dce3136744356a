// Package guard ends a tenant that holds more GPU memory than its slice, in the
// way that harms its neighbours least, and says why.
//
// The one idea: Step is pure. It takes what was known, one look at the devices
// and the limits, and returns what is known and what to do. Everything that
// decides whether a process lives is in it, so that every behaviour is a table
// test. Run is the loop around it: it looks, steps, acts and reports, and
// decides nothing.
//
// Evidence rules. A reading that cannot be attributed never ends a process: a
// device with a fault, with a process outside the pod, or with no figure that is
// known, is blind, and that is said. A container is past its wall only while
// consecutive trusted looks, newer than the last ending, say so; a second look
// confirms it before anything is ended; one process at a time is.
//
// The package imports the standard library and guard/limits. What touches NVML,
// /proc or the MPS daemon lives in guard/gpu, guard/proc and guard/mps.
package guard
