package policies

import "fmt"

// Bypassed says that nothing is refused in the namespace for a while. The value of the label does not matter, because
// selectors of the API server cannot read it either.
func (n Namespace) Bypassed() bool {
	_, ok := n.Labels[LabelBypass]
	return ok
}

// relaxed turns a refusal into a warning where the namespace is bypassed. What can be given a slice still gets one.
func (d Decision) relaxed(n Namespace) Decision {
	if d.Outcome != Refused || !n.Bypassed() {
		return d
	}
	d.Outcome = LeftAlone
	for _, v := range d.Violations {
		d.Warnings = append(d.Warnings, fmt.Sprintf("would be refused, were namespace %q not bypassed: %s", n.Name, v))
	}
	return d
}
