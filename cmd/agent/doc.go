// Command agent enforces the slices of every pod of its node.
//
// The one idea: no tenant can reach it. It shares the node's PID namespace, learns
// a process's pod from its cgroup and a pod's slices from the API server, and reads
// nothing that a tenant can write. Packages guard/node and guard/idle decide and
// terminate; this command connects them with the API server: the node's pods,
// Events, a Lease, metrics and probes.
package main
