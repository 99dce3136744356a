package api

// Violation is one reason to deny a pod. Rule and Reason are stable (metrics, audit); Detail is for people: what was
// requested, what there is, and what to do next.
type Violation struct {
	Rule   Rule   `json:"rule"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// Rule names the family of a denial; it is a metric label and an audit key.
type Rule string

// The rules.
const (
	RuleRequest     Rule = "request"     // the request cannot be read or contradicts itself
	RulePolicy      Rule = "policy"      // policy does not allow what was requested, or is broken
	RuleFit         Rule = "fit"         // no pool holds the slice
	RuleLimit       Rule = "limit"       // above policy's limit for a container or pod
	RuleStrategy    Rule = "strategy"    // the strategy cannot be used by this pod
	RuleEnforcement Rule = "enforcement" // below policy's minimum
	RuleFramework   Rule = "framework"   // the framework would leave its slice or die of its settings
	RuleTemplate    Rule = "template"    // a quantity that Kubernetes denies in templates
	RuleImmutable   Rule = "immutable"   // a label of ours changed on a live pod
	RuleSize        Rule = "size"        // more than the bounds on what is parsed
	RuleTamper      Rule = "tamper"      // the pod could leave its slice, or take devices that it was not given
	RuleUndone      Rule = "undone"      // what a slice consists of is missing or changed
)

// String is the sentence that the user reads.
func (v Violation) String() string {
	if v.Detail == "" {
		return v.Reason
	}
	return v.Reason + ": " + v.Detail
}
