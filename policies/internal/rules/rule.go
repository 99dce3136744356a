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
	// Reason names the denied thing in a few stable words.
	Reason string
	// Everywhere reports whether the rule holds for every pod of a governed namespace; else for those that get a slice.
	Everywhere bool
	// Find returns the parts that the rule denies of a pod as its author wrote it: each part and its place, one text
	// each.
	Find func(Subject) []string
	// Instead is the remedy.
	Instead string
}

// Subject holds the facts about a pod that tamper rules read.
type Subject struct {
	Pod   *corev1.Pod
	Pools []pools.Pool
	MPS   strategies.MPSSpec // whose directories no slice may reach
}

// liesIn reports whether a cleaned path is root or lies in it.
func liesIn(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}
