// Package cdi holds gpuslice against a node on which containers get GPUs by CDI alone: NVIDIA's device plugin with
// deviceListStrategy cdi-cri, the specification and the hooks of NVIDIA's newest toolkit, containerd's CDI, and plain runc.
package cdi
