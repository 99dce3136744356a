// Command gpuslice answers offline what the webhook would answer in a cluster: it reads manifests, policies and nodes
// from files, and asks the same core (package policies).
//
//	render       what becomes of pods and of the pods that workloads make
//	explain      which policy, pool, strategy, slice and enforcement, and why not the others
//	policy lint  every problem of policy documents
//	bypass       refuse nothing in a namespace for a while
//
// Objects go to standard output, reasons to standard error. The exit code says what happened: see the exit constants.
//
// It makes no connection and starts in milliseconds, so it reaches neither a Kubernetes client nor the webhook.
package main
