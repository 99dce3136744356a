// Package node enforces the slices of every pod of a node from one reading of its
// devices: the guard of package guard, once for each pod, where no tenant can
// reach it.
//
// The one idea: three things have to agree before a process is signaled. Its cgroup
// is one of a pod's containers, that pod was promised a slice, and a device lists
// the process while the pod is over its promise. Each is looked at again between
// the pidfd and the signal. A process in no pod, or in a pod without a promise, is
// only counted.
//
// The limits come from whoever knows the pods as the API server has them. Nothing
// is read of a tenant's files, variables or names.
//
// The package imports guard and packages below it, and no Kubernetes package.
package node
