// Package proc knows the processes of a pod: which container each belongs to,
// whether it is the same as a moment ago, and how to terminate it without ever
// hitting another. A Table has those of the guard's own pod, a Node those of all
// pods of a node, for its agent.
//
// The one idea: nothing is signaled by number. A pidfd of the process is opened
// first; then its start time and cgroup are read again; then the pidfd shows
// whether its process still lives. Only then the values are known to belong to the
// signaled process.
//
// To a Table, a process belongs to the pod when its cgroup lies beside the guard's
// own. The container's name comes from the mount of its termination log, which the
// kubelet makes, and is kept for the cgroup once read, so that a process that
// makes mounts of its own cannot pass for another container. All of it is read
// without privilege. A Node reads pod and container of a process from its cgroup.
//
// The package imports guard, guard/limits, guard/cgroup, golang.org/x/sys/unix and
// the standard library.
package proc
