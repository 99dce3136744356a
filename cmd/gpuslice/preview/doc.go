// Package preview finds the decisions on objects: by the webhook's own core, on files or on the objects of a cluster,
// or by dry-runs that the webhooks of a cluster answer.
package preview
