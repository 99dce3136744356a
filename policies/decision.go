package policies

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// Outcome is the effect on a pod.
type Outcome string

// The outcomes.
const (
	Unchanged     Outcome = "unchanged"
	Mutated       Outcome = "mutated"
	DevicesHidden Outcome = "devices-hidden" // no slice, and no device that was not requested either
	Denied        Outcome = "denied"
)

// Decision is the answer to one pod. It is a value: nothing in it is shared with the input.
type Decision struct {
	// Outcome is the effect now, under the policy's enforcementMode.
	Outcome Outcome `json:"outcome"`
	// IfEnforced is the outcome under enforce; it differs from Outcome in audit and warn only.
	IfEnforced      Outcome               `json:"ifEnforced"`
	Mode            api.EnforcementMode   `json:"mode,omitempty"`
	Policy          string                `json:"policy,omitempty"`
	UnchangedReason string                `json:"reason,omitempty"` // why a pod is unchanged, in a few stable words
	Violations      []api.Violation       `json:"violations,omitempty"`
	Warnings        []string              `json:"warnings,omitempty"`
	Promise         *promise.Promise      `json:"promise,omitempty"`
	Planned         *promise.Planned      `json:"planned,omitempty"`
	Visibility      *podedit.Visibility   `json:"visibility,omitempty"` // changes to a pod whose devices are hidden
	Candidates      []api.CandidateReport `json:"candidates,omitempty"`
}

// Rewrite returns the pod as the decision has it: a copy, or the pod itself where nothing is to be changed.
func (d Decision) Rewrite(pod *corev1.Pod) *corev1.Pod {
	switch d.Outcome {
	case Mutated:
		return podedit.Apply(d.Promise, pod)
	case DevicesHidden:
		pod = d.Visibility.Apply(pod)
	case Denied:
		return pod
	}
	if d.Mode == "" || d.Mode == api.EnforceAudit {
		return pod
	}
	return withoutRecords(pod)
}

// settle turns the decision under enforce into the one under the policy's mode and the namespace's bypass: warn and a bypass let
// denied pods pass unchanged with a warning, audit changes and denies nothing. Pods that can get a slice still do.
func (in *Input) settle(d Decision) Decision {
	if in.PolicyError == nil && !in.Policy.Off() {
		d.Policy, d.Mode, d.IfEnforced = in.Policy.Name, in.Policy.EnforcementMode, d.Outcome
	}
	for i := range d.Violations {
		in.locate(&d.Violations[i])
	}
	denied := "would be denied: "
	switch {
	case d.Mode == api.EnforceAudit && d.Outcome != Unchanged:
		d.Outcome, d.Warnings = Unchanged, nil
		return d
	case d.Outcome != Denied:
		return d
	case d.Mode != api.EnforceWarn:
		if _, bypassed := BypassOf(in.Namespace.Labels, nil); !bypassed {
			return d
		}
		denied = fmt.Sprintf("would be denied, were namespace %q not bypassed: ", in.Namespace.Name)
	}
	d.Outcome = Unchanged
	for _, v := range d.Violations {
		d.Warnings = append(d.Warnings, denied+v.String())
	}
	return d
}

// Deny is the decision on violations that were found before a pod or workload could be decided: denied under enforce
// and under a policy that cannot be read, a warning under warn, a report under audit, nothing if no policy is in force.
func (in Input) Deny(violations ...api.Violation) Decision {
	d := Decision{Outcome: Denied, IfEnforced: Denied, Violations: violations}
	switch {
	case in.PolicyError != nil: // there is no policy then
	case in.Policy == nil:
		return leaveUnchanged(whyNoPolicy)
	case in.Policy.Off():
		return leaveUnchanged(whyOff)
	}
	return in.settle(d)
}

// Message joins the violations to one text.
func (d Decision) Message() string {
	texts := make([]string, len(d.Violations))
	for i, v := range d.Violations {
		texts[i] = v.String()
	}
	return strings.Join(texts, "; ")
}

// Reason is the stable word for metrics: the first violation's rule, why the pod was left unchanged, or "sliced".
func (d Decision) Reason() string {
	switch {
	case len(d.Violations) > 0:
		return string(d.Violations[0].Rule)
	case d.Outcome == Mutated || d.IfEnforced == Mutated:
		return "sliced"
	}
	return d.UnchangedReason
}
