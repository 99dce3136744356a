// Package install puts gpuslice on a test cluster, from the manifests that users apply. Tests, the benchmark and the
// demonstration share it.
//
// New is for an API server without a node: the webhook's own process runs beside it, with the token of its own
// ServiceAccount, so that RBAC is real. StartNode is for a node: the Deployment runs as pods, and NVIDIA's device plugin
// and feature discovery offer a simulated GPU, which each namespace has as its test wants it (OnNode.GPU).
package install
