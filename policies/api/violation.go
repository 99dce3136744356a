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

// The rules that a webhook reports by itself.
const (
	RulePolicy Rule = "policy" // policy does not allow what was requested, or is broken
	RuleSize   Rule = "size"   // more than the bounds on what is parsed
)

// String is the sentence that the user reads.
func (v Violation) String() string {
	if v.Detail == "" {
		return v.Reason
	}
	return v.Reason + ": " + v.Detail
}
