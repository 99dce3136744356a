package rules

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Rule denies one way in which a pod could leave its slice, take devices that it was not given, or reach its
// guard or its neighbors.
type Rule struct {
	// Reason names the denied thing in a few stable words.
	Reason string
	// Everywhere reports whether the rule holds for every pod of a governed namespace; else for those that get a slice.
	Everywhere bool
	// Find returns the parts that the rule denies of a pod as its author wrote it.
	Find func(Subject) []Part
	// Instead is the remedy.
	Instead string
}

// Part is a part of a pod that a rule denies. Container and Field are as those of a Violation.
type Part struct{ Container, Field, Text string }

// deny is the denial of the parts, of which there is at least one.
func (r Rule) deny(found []Part, remedy string) api.Violation {
	texts := make([]string, len(found))
	for i, part := range found {
		texts[i] = part.Text
	}
	return api.Violation{Rule: api.RuleTamper, Reason: r.Reason, Detail: message.ShortList(texts) + "; " + remedy,
		Container: found[0].Container, Field: found[0].Field}
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
