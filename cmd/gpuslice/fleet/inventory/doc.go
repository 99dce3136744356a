// Package fleet is a snapshot of the resources of a cluster's GPU nodes and of their use by pods: the input of plans
// and pages, on any machine and long after.
//
//	cluster (fleet/source) -> Fleet (fleet.go) -> Write, a file (codec.go) -> Read, within bounds (codec.go, check.go)
//
// A Fleet holds no environment, no command line, no image, no annotation and no Secret. HashNames replaces the names of
// people, teams and machines (hash.go).
package inventory
