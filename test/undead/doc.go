// Package undead makes processes whose first threads have exited, as a tenant can
// that hides from who reads /proc: a traced thread stays a zombie until its tracer
// waits for it.
//
// It imports the standard library only.
package undead
