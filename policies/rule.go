package policies

import "strings"

// TamperRule refuses one way in which a pod could leave its slice, take devices that it was not given, or reach its
// guard or its neighbours.
type TamperRule struct {
	// Reason says in a few stable words what is refused.
	Reason string
	// Everywhere says that the rule holds for every pod of a governed namespace; else for those that get a slice.
	Everywhere bool
	// Find returns what the rule refuses of a pod as its author wrote it: what was found and where, one text each.
	Find func(in *Input) []string
	// Instead says what to do about it.
	Instead string
}

// Rules lists the tamper rules, in the order in which an author is told.
func Rules() []TamperRule {
	return []TamperRule{
		hostPID(), hostIPC(), privileged(), capabilities(), hostPath(), deviceMount(), cdiAnnotation(), nodeName(),
	}
}

// tampering holds a pod against the rules.
func tampering(in *Input, sliced bool) (out []Violation) {
	for _, r := range Rules() {
		if !sliced && !r.Everywhere {
			continue
		}
		if found := r.Find(in); len(found) > 0 {
			out = append(out, Violation{RuleTamper, r.Reason, shortList(found) + "; " + r.Instead})
		}
	}
	return out
}

// liesIn says that a cleaned path is root or lies in it.
func liesIn(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}
