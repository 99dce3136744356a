package webhook

import "github.com/gpuslice/gpuslice/policies"

// leftAlone is the decision to do nothing for a reason found at the edge.
func leftAlone(why string) policies.Decision {
	return policies.Decision{Outcome: policies.LeftAlone, Would: policies.LeftAlone, Why: why}
}
