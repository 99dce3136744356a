// Package explain is the command that shows the slices of a pod, and why not others; or, for a pod or workload of a
// cluster, its request, its slices, the observations, and why it is pending or ended.
//
//	files: preview.Run -> page
//	names: gather(cluster, name) -> facts -> summarize -> status
//
// summarize is a pure function of the facts. The Promise on the pod records the request and the slices, so neither
// policies nor pools have to be read, and tenants can explain their own pods.
package explain
