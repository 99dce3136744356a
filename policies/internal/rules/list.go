package rules

import "github.com/gpuslice/gpuslice/policies/api"

// All lists the tamper rules, in the order in which an author reads them.
var All = []Rule{hostPID, hostIPC, privileged, capabilities, hostPath, deviceMount, deviceAnnotation, nodeName}

// Find returns what the rules deny of a pod; sliced reports whether it gets a slice.
func Find(s Subject, sliced bool) (out []api.Violation) {
	for _, r := range All {
		if !sliced && !r.Everywhere {
			continue
		}
		if found := r.Find(s); len(found) > 0 {
			out = append(out, r.deny(found, r.Instead))
		}
	}
	if !sliced {
		out = append(out, unpromisedParts(s)...)
	}
	return out
}
