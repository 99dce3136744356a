// Package observe reports which tiers of enforcement really apply to the pods that gpuslice planned.
//
// Admission plans tiers of enforcement from the known pools; the pod's node and the state of its guard are known only
// later. Observe, a pure function, compares the two:
//
//	promise (planned) + pod status + node labels + the guard's notices, or the Lease of the node's agent -> Observation (tiers that apply, reasons)
//
// A Controller calls it for each pod with a promise, in the leader, and writes the annotation gpuslice.dev/observed,
// Events on the pod and its owners, and the metric gpuslice_observed_pods. The guard's terminations are in termination
// messages and in Events of the kubelet, which drops them after 25; from either it writes one Event of gpuslice's own,
// and the annotation, in which the guard reads the reports that have arrived.
//
// The one idea: only facts that a tenant cannot write can raise a tier. Pod status and node labels come from the node;
// Events and annotations may come from anybody who may edit the namespace, whatever component they name as their
// reporter, so that they can only lower a tier. That is why the guard's notice that it enforces again does not revoke
// its notice that it does not: only a new start of the guard's container does.
//
// Observe claims nothing about facts that cannot be seen from here: whether an MPS daemon that answered the check still
// runs, and whether the node's container toolkit and cgroups support the driver's own limit.
package observe
