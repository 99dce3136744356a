// Package install puts gpuslice on a test cluster: the manifests that users apply, and the webhook's own process beside
// the API server, with the token of its own ServiceAccount, so that RBAC is real. Tests, the benchmark and the
// demonstration share it.
package install
