package api

// Rule names the family of a denial; it is a metric label and an audit key.
type Rule string

// The rules by which a pod is denied.
const (
	RulePolicy      Rule = "policy"      // policy does not allow the request, or is broken
	RuleSize        Rule = "size"        // more than the bounds on parsed input
	RuleRequest     Rule = "request"     // the request cannot be read or contradicts itself
	RuleFit         Rule = "fit"         // no pool holds the slice
	RuleLimit       Rule = "limit"       // above policy's limit for a container or pod
	RuleStrategy    Rule = "strategy"    // the strategy cannot be used by this pod
	RuleEnforcement Rule = "enforcement" // below policy's minimum
	RuleFramework   Rule = "framework"   // the framework would leave its slice or die of its settings
	RuleTemplate    Rule = "template"    // a quantity that Kubernetes denies in templates
	RuleImmutable   Rule = "immutable"   // a label of ours changed on a live pod
	RuleTamper      Rule = "tamper"      // the pod could leave its slice, or take devices that it was not given
	RuleUndone      Rule = "undone"      // a part of a slice is missing or changed
)
