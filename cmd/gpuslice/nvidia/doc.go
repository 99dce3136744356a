// Package nvidia knows the DaemonSets of NVIDIA's software for Kubernetes, and reads its configuration: the device plugin's,
// with the plugin's own parser, and the MIG manager's.
package nvidia
