package rules

import (
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// All lists the tamper rules, in the order in which an author reads them.
var All = []Rule{hostPID, hostIPC, privileged, capabilities, hostPath, deviceMount, deviceAnnotation, nodeName}

// Find holds a pod against the rules.
func Find(s Subject, sliced bool) (out []api.Violation) {
	for _, r := range All {
		if !sliced && !r.Everywhere {
			continue
		}
		if found := r.Find(s); len(found) > 0 {
			out = append(out, api.Violation{Rule: api.RuleTamper, Reason: r.Reason, Detail: message.ShortList(found) + "; " + r.Instead})
		}
	}
	if !sliced {
		out = append(out, unpromisedParts(s)...)
	}
	return out
}
