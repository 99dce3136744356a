// Package workload names workloads and their containers, from a pod alone.
//
// Who may create pods in a namespace may write any owner into them. A record by these names therefore says what the pods of a namespace
// used under a name, and proves nothing about who made them.
package workload
