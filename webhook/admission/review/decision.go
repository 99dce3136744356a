package review

import (
	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// OfDecision is the answer to a decision. patch turns the object into the decided one; a denied object has none.
func OfDecision(d policies.Decision, patch []jsonpatch.Operation) Answer {
	if d.Outcome == policies.Denied {
		return denial(metav1.StatusReasonForbidden, d)
	}
	return Answer{Patch: patch, Warnings: Warnings(d.Warnings), Audit: audit(d)}
}

// OfUnreadable is the answer to a decision about an object that exceeds the bounds on parsed input.
func OfUnreadable(d policies.Decision) Answer {
	if d.Outcome != policies.Denied {
		return OfDecision(d, nil)
	}
	return denial(metav1.StatusReasonInvalid, d)
}

// denial denies with the decision's message, and with each violation as a cause that tools can read.
func denial(reason metav1.StatusReason, d policies.Decision) Answer {
	answer := Denied(reason, d.Message())
	for _, v := range d.Violations[:min(len(d.Violations), maxWarnings)] {
		answer.Denial.Causes = append(answer.Denial.Causes, metav1.StatusCause{
			Type: causeOf(v.Rule), Message: shorten.Line(v.String(), MaxMessage), Field: shorten.Line(v.Field, MaxMessage),
		})
	}
	answer.Warnings, answer.Audit = Warnings(d.Warnings), audit(d)
	return answer
}

// causeOf is the rule in the words of Kubernetes' own validation. The reason at the message's beginning is as stable, and finer.
func causeOf(rule api.Rule) metav1.CauseType {
	switch rule {
	case api.RuleRequest, api.RuleTemplate, api.RuleImmutable, api.RuleFramework:
		return metav1.CauseTypeFieldValueInvalid
	case api.RuleSize:
		return metav1.CauseTypeTooLong
	}
	return metav1.CauseTypeForbidden // well-formed, and denied under the policy, the quota or the nodes of now
}

// audit is the decision, for the API server's audit log.
func audit(d policies.Decision) map[string]string {
	annotations := map[string]string{"outcome": string(d.Outcome)}
	for key, value := range map[string]string{
		"ifEnforced": string(d.IfEnforced), "reason": d.Reason(), "policy": d.Policy, "mode": string(d.Mode),
	} {
		if value != "" {
			annotations[key] = value
		}
	}
	return annotations
}
