package policies

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// TamperRule denies one way in which a pod could leave its slice, take devices that it was not given, or reach its
// guard or its neighbours.
type TamperRule struct {
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
	Pools []Pool
	MPS   MPSSpec // whose directories no slice may reach
}

// Rules lists the tamper rules, in the order in which an author is told.
func Rules() []TamperRule {
	return []TamperRule{
		hostPID(), hostIPC(), privileged(), capabilities(), hostPath(), deviceMount(), cdiAnnotation(), nodeName(),
	}
}

// tampering holds a pod against the rules.
func tampering(s Subject, sliced bool) (out []Violation) {
	for _, r := range Rules() {
		if !sliced && !r.Everywhere {
			continue
		}
		if found := r.Find(s); len(found) > 0 {
			out = append(out, Violation{RuleTamper, r.Reason, shortList(found) + "; " + r.Instead})
		}
	}
	return out
}

// liesIn reports whether a cleaned path is root or lies in it.
func liesIn(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}
