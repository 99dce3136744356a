package preview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// Result is the decision on one object.
type Result struct {
	manifest.Object
	Decision policies.Decision
	After    json.RawMessage // nil: denied
	Claimed  []string        // the pod's claims of GPUs
	Holding  *quota.Holding  // its charge; nil: none
	Template string          // the path of the pod template, where kinds have it anywhere

	template bool // the decision is about the pods of the object's template
	follows  bool // an earlier result is about another template of the same object
}

// Why objects without a pod stay as they are.
const (
	whyNoPod      = "no pod in it"
	whyNoTemplate = "its pods are created by a controller, from no template in it: not judged"
	whyOtherShape = "its fields have another shape than a container's: not judged"
)

// HoldsPod reports whether the object is a pod, or a workload with the template of pods.
func (r Result) HoldsPod() bool {
	return !slices.Contains([]string{whyNoPod, whyNoTemplate, whyOtherShape}, r.Decision.UnchangedReason)
}

// First reports whether no earlier result is about the same object: After is the whole object, with all its templates.
func (r Result) First() bool { return !r.follows }

func (r Result) String() string {
	if r.Template == "" {
		return r.Object.String()
	}
	return r.Object.String() + " " + r.Template
}

// hold computes the pod's charge in a quota.
func (r *Result) hold(in policies.Input) {
	if in.Policy.Off() {
		return
	}
	holding := accounting.Exclusive(in.Pod, in.Pools)
	if p := r.Decision.Promise; p != nil {
		holding = accounting.Holding(p, podedit.Apply(p, in.Pod))
	}
	if holding, r.Claimed = in.GPUClaims().Holding(holding, r.Decision.Promise),
		in.GPUClaims().Claimed(r.Decision.Promise); r.Decision.Promise != nil || len(r.Claimed) > 0 {
		r.Holding = &holding
	}
	if d := &r.Decision; len(r.Claimed) > 0 && d.Promise == nil && d.UnchangedReason != "" {
		d.UnchangedReason += ", and the GPUs that it claims stay as they are"
	}
}

// Report is a result as -o json prints it, without the parts of a single command.
type Report struct {
	cli.Place
	Kind       string              `json:"kind"`
	Namespace  string              `json:"namespace,omitempty"`
	Name       string              `json:"name"`
	Template   string              `json:"template,omitempty"`
	Outcome    policies.Outcome    `json:"outcome"`
	IfEnforced policies.Outcome    `json:"ifEnforced"`
	Mode       api.EnforcementMode `json:"mode,omitempty"`
	Policy     string              `json:"policy,omitempty"`
	Reason     string              `json:"reason"`
	Violations []api.Violation     `json:"violations"`
	Warnings   []string            `json:"warnings"`
}

// Report returns r as -o json prints it.
func (r Result) Report() Report {
	d := r.Decision
	return Report{
		Place: r.At.Place(), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Template: r.Template,
		Outcome: d.Outcome, IfEnforced: d.IfEnforced, Mode: d.Mode, Policy: d.Policy, Reason: d.Reason(),
		Violations: cli.NonNil(d.Violations), Warnings: cli.NonNil(d.Warnings),
	}
}

// Lines describe the decision on the object and its reason; none for objects that hold no pod.
func (r Result) Lines() []string {
	d := r.Decision
	if !r.HoldsPod() {
		return nil
	}
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, r.String()+": "+fmt.Sprintf(format, args...))
	}
	switch {
	case d.Outcome == policies.Denied:
		for _, v := range d.Violations {
			add("denied: %s", v)
		}
	case d.Outcome == policies.Mutated:
		add("mutated: %s", Summary(d))
	case d.Outcome == policies.DevicesHidden:
		add("no slice (%s), and variables choose no devices", d.UnchangedReason)
	case d.Mode == api.EnforceAudit && d.IfEnforced == policies.Denied:
		add("left unchanged in audit, would be denied: %s", d.Message())
	case d.Mode == api.EnforceAudit && d.IfEnforced == policies.Mutated:
		add("left unchanged in audit, would be mutated: %s", Summary(d))
	case d.Mode == api.EnforceAudit && d.IfEnforced == policies.DevicesHidden:
		add("left unchanged in audit, would lose the devices that it does not request")
	case d.IfEnforced == policies.Denied:
		add("left unchanged in warn")
	default:
		add("unchanged: %s", d.UnchangedReason)
	}
	for _, w := range d.Warnings {
		add("warning: %s", w)
	}
	if r.template && d.Outcome == policies.Mutated && !bytes.Equal(r.After, r.Raw) {
		add("the template is printed as its pods come out; in a cluster the pods are mutated, and the %s stays as it was written", r.Kind)
	}
	return lines
}

// Summary is one line about a pod's slices.
func Summary(d policies.Decision) string {
	if d.Planned == nil {
		return "as its policy sets"
	}
	var each []string
	for _, c := range d.Planned.Containers {
		each = append(each, strings.TrimSpace(c.Name+" "+c.Memory))
	}
	return fmt.Sprintf("%s under %s on %s, enforcement planned: %s", strings.Join(each, ", "),
		d.Planned.Strategy, d.Planned.Pool, d.Planned.Tier)
}
