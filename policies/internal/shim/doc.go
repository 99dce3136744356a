// Package shim makes a container's Python load guard/shim, which caps releases that read no limit from their
// environment.
package shim
