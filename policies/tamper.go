package policies

import "github.com/gpuslice/gpuslice/policies/internal/rules"

// TamperReasons lists the reasons of the tamper rules, in the order in which an author reads them.
func TamperReasons() []string {
	var reasons []string
	for _, r := range rules.All() {
		reasons = append(reasons, r.Reason)
	}
	return reasons
}
