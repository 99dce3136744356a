// Package certmanager says in cert-manager's own types what an installation asks of it. deploy/certmanager holds the result
// as YAML; this package makes it, so that names and fields are checked by cert-manager's code and not by eye.
//
// It is apart from certs because the webhook itself needs none of these types: it reads files, and one Secret.
package certmanager
