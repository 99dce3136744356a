// Command gpuslice says what the webhook answers, and looks after its installation. It asks the same core (package
// policies), on files or on what a cluster holds.
//
//	render       what becomes of pods and of the pods that workloads make
//	explain      which policy, pool, strategy, slice and enforcement, and why not the others; what became of a live pod
//	policy lint  every problem of policy documents
//	bypass       refuse nothing in a namespace for a while
//	doctor       what a cluster offers, what stands in the way, and how the installation does
//	verify       proof by dry-runs that the webhook answers
//	uninstall    removes all of it
//
// Objects go to standard output, reasons to standard error. The exit code says what happened: see the exit constants.
//
// With files it makes no connection. It starts in milliseconds, so it reaches no controller and no manager.
package main
