// Package certs knows where the webhook's serving certificate comes from, and whether the API server will trust it.
//
// A Source keeps a certificate current and says when it may be served. SelfSigned has an authority of its own in a
// Secret, a leaf for each replica in memory, and keeps the authority's certificates in the webhook configurations.
// FromFiles serves what somebody else mounts.
//
// The one idea: a server is ready only when the leaf it serves verifies, under the very name by which the API server
// calls, against the bundle that stands in the live webhook configurations. A rotation that went wrong then shows as a
// replica that is not ready, not as admission that fails.
//
// The package knows nothing of what is served: it imports neither webhook nor policies.
package certs
