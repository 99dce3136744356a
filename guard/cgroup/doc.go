// Package cgroup reads the text of /proc/<pid>/cgroup: which cgroup a process is
// in, and on a node, which container of which pod.
//
// The one idea: a tenant may make cgroups below its own and move its processes into
// them, and never above. So the outermost pod of a path is the process's pod, the
// name below it is its container, and any further name has no meaning.
//
// The package is pure and imports the standard library only.
package cgroup
