// Package certs knows where the webhook's serving certificate comes from, and whether the API server will trust it.
//
// A Source keeps a certificate current and knows when it may be served. SelfSigned has an authority of its own in a
// Secret, a leaf for each replica in memory, and keeps the authority's certificates in the webhook configurations.
// Mounted serves files that others keep, cert-manager for instance.
//
// Two ideas. A server is ready only when the leaf it serves verifies, under the very name by which the API server calls,
// against the bundle in the live webhook configurations: a rotation that went wrong then shows as a replica
// that is not ready, not as admission that fails. And nobody goes over to a leaf of a new authority before that one has
// been in every live configuration for a while, nor is an authority forgotten before the last of its leaves has expired:
// README.md has the order.
//
// Every deadline is a time of day, in the certificates or the Secret. A process or machine that was suspended is not
// ready until its first check.
//
// The package does not depend on the served endpoints: it imports neither webhook nor policies.
package certs
