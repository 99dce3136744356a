// Package shim is how a container's Python comes to load guard/shim, which caps what reads no limit from its environment.
package shim
