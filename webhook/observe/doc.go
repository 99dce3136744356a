// Package observe says what enforcement really holds for the pods that gpuslice planned.
//
// Admission plans tiers of enforcement from what it knows of pools; where the pod landed, and what became of the guard
// beside it, is known only later. Observe, a pure function, holds the one against the other:
//
//	promise (planned) + pod status + node labels + what the guard said -> Observation (tiers that hold, reasons)
//
// A Controller does so for each pod that carries a promise, in the one replica that holds a Lease, and writes the
// annotation gpuslice.dev/observed, Events on the pod and its owner, and the metric gpuslice_pod_enforcement.
//
// The one idea: only what a tenant cannot write can raise a tier. Pod status and node labels come from the node;
// Events and annotations may come from anybody who may edit the namespace, whatever component they name as their
// reporter, so that they can only weaken what is said. This is why the guard's own "can again" does not lift its
// "cannot": a guard container that starts anew does.
//
// What is not visible from here is not claimed to be: whether an MPS daemon that answered the check still lives, and
// whether the node's container toolkit and cgroups serve the driver's own limit.
package observe
