// Package cdi holds gpuslice against a node on which containers get GPUs by CDI alone: NVIDIA's device plugin with
// deviceListStrategy cdi-cri, NVIDIA's own hook, containerd's CDI, and plain runc.
package cdi
