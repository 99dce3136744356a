// Package nvidia reads what NVIDIA's software for Kubernetes is configured with: the device plugin, with the plugin's own
// parser; the MIG manager; and the GPU Operator's ClusterPolicy.
package nvidia
