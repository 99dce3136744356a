// Package preview finds out what becomes of objects: by the webhook's own core, on files or on what a cluster holds, or by
// dry-runs that the webhooks of a cluster answer.
package preview
