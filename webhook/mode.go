package webhook

import "github.com/gpuslice/gpuslice/policies"

// underMode is what violations found at the edge come to under a policy: refused under enforce (and where there is no
// policy to say otherwise), a warning under warn, a report under audit, nothing where the policy is off.
func underMode(policy *policies.Policy, violations []policies.Violation) policies.Decision {
	d := policies.Decision{Outcome: policies.Refused, Would: policies.Refused, Violations: violations}
	if policy == nil {
		return d
	}
	if policy.Mode == policies.ModeOff {
		d = leftAlone(whyPolicyOff)
		d.Policy = policy.Name
		return d
	}
	d.Policy, d.Mode = policy.Name, policy.EnforcementMode
	switch policy.EnforcementMode {
	case policies.EnforceAudit:
		d.Outcome = policies.LeftAlone
	case policies.EnforceWarn:
		d.Outcome = policies.LeftAlone
		for _, v := range violations {
			d.Warnings = append(d.Warnings, v.String())
		}
	}
	return d
}
