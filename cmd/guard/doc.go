// Command guard enforces the GPU memory slices of the pod it runs in.
//
// check is the init container, run the sidecar, status the kubelet's exec
// probes. This package is wiring: flags and environment in, logs, metrics, probe
// answers and messages out. Package guard decides.
//
// It reaches no Kubernetes package and no API: the kubelet records the output of
// a probe as an Event.
package main
