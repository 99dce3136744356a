// Package demo shows the main job on something real, as processes of this machine: the guard ends the tenant that goes past its slice
// on a simulated driver while its neighbor notices nothing, and sample pods are decided by the packages that the webhook decides by
// (policies), in this process. It links neither a cluster nor a client of one: package node does, and shows the same there.
package demo
