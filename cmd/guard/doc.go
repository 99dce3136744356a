// Command guard holds the pod it runs in to its GPU memory slices.
//
// check is the init container, run the sidecar, status the kubelet's exec
// probes. This package is wiring: flags and environment in, logs, metrics, probe
// answers and messages out. What is decided is decided in package guard.
//
// It reaches no Kubernetes package and no API: the kubelet writes what a probe
// says as an Event.
package main
