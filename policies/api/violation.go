package api

// Violation is one reason to deny a pod. Rule and Reason are stable (metrics, audit); Detail is for people: the
// request, the available choices, and the next step.
type Violation struct {
	Rule   Rule   `json:"rule"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// String is the sentence that the user reads.
func (v Violation) String() string {
	if v.Detail == "" {
		return v.Reason
	}
	return v.Reason + ": " + v.Detail
}
