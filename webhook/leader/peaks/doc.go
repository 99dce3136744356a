// Package peaks records the GPU memory that workloads used, for recommendations where there is no Prometheus.
//
//	Leases of the agents, once a minute -> table (table.go) -> ConfigMap per UTC day, once an hour (recorder.go) -> Read (read.go)
//
// The one idea: all that a Day has of an hour is a highest value or a set, by the API server's clock. Two records of a day are united by
// the higher peak and by what either has seen, however often, and in whatever order: nothing is counted twice, whoever leads.
//
// Agents report the use of a pod as one sum. It is recorded for pods with one slice, whose sum is the use of their container. Pods with
// more slices are only counted. A sidecar cannot report to the cluster: without an agent there is no record. A container that starts or is
// terminated between two looks is recorded if its pod's status, or the observation of the pod, still has the time.
package peaks
