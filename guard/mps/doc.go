// Package mps terminates clients of NVIDIA's MPS daemon through its control
// program.
//
// The one idea: a busy client is never signaled first. NVIDIA calls the outcome
// undefined: server and neighbors may hang. The daemon terminates the client
// first, which leaves the others intact; the signal follows.
//
// The daemon knows its clients by PIDs of its own namespace, and lists for each
// the PID namespace it lives in. That names the pod, not the process. So the
// match is certain only when the pod has one client and the devices list no
// other process of it, or when all of them are to go. A pod without a client has
// evaded the daemon, and a signal harms nobody. Where it is not certain, or where
// program or pipe are out of reach, the policy decides between leaving the client
// and signaling it. An agent that shares the PID namespace of the node's daemons
// knows each client by its PID.
//
// The package imports guard, guard/limits and the standard library.
package mps
