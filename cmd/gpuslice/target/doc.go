// Package target is the cluster for which a command answers: read from files, from an API server, or both.
package target
