// Package explain is the command that shows what a pod would get, and why not something else; or, for a pod or workload of a
// cluster, what it requested, what it was given, what is observed, and why it is pending or ended.
//
//	files: preview.Run -> page
//	names: gather(cluster, name) -> facts -> summarize -> status
//
// summarize is a pure function of what was read. The Promise on the pod records what was requested and given, so neither
// policies nor pools have to be read, and tenants can explain their own pods.
package explain
