package rules

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Rule denies one way in which a pod could leave its slice, take devices that it was not given, or reach its
// guard or its neighbours.
type Rule struct {
	// Reason says in a few stable words what is denied.
	Reason string
	// Everywhere reports whether the rule holds for every pod of a governed namespace; else for those that get a slice.
	Everywhere bool
	// Find returns what the rule denies of a pod as its author wrote it: what was found and where, one text each.
	Find func(Subject) []string
	// Instead says what to do about it.
	Instead string
}

// Subject is what a tamper rule may know of a pod.
type Subject struct {
	Pod   *corev1.Pod
	Pools []pools.Pool
	MPS   strategies.MPSSpec // whose directories no slice may reach
}

// liesIn reports whether a cleaned path is root or lies in it.
func liesIn(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}
