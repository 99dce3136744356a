package webhook

import "github.com/gpuslice/gpuslice/policies"

// judge is what violations found at the edge come to: refused under enforce and under a policy that cannot be read, a
// warning under warn, a report under audit, nothing where no policy is in force.
func judge(in policies.Input, violations []policies.Violation) policies.Decision {
	d := policies.Decision{Outcome: policies.Refused, Would: policies.Refused, Violations: violations}
	switch {
	case in.PolicyError != nil:
		return d
	case in.Policy == nil:
		return leftAlone(whyUngoverned)
	case in.Policy.Mode == policies.ModeOff:
		return leftAlone(whyPolicyOff)
	}
	return d.Under(in.Policy)
}

// leftAlone is the decision to do nothing for a reason found at the edge.
func leftAlone(why string) policies.Decision {
	return policies.Decision{Outcome: policies.LeftAlone, Would: policies.LeftAlone, Why: why}
}
