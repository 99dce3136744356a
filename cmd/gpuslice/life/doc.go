// Package life tells what became of a pod, or of the pods of a workload: what was asked, what was given, what holds, what
// was said about it, and why it waits or ended.
//
//	Gather(cluster, name) -> Facts -> Tell -> Life
//
// Tell is a pure function of what was read. The one idea: the Promise on the pod says what was asked and given, so that
// neither policies nor pools have to be read, and a tenant can ask about pods of their own.
package life
