package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Pod       *corev1.Pod
	Namespace Namespace
	Policy    *Policy // nil: no policy governs the namespace
	// PolicyError is why the namespace's policy cannot be used, when no last good version is known. Pods that ask for
	// a slice are refused with it.
	PolicyError error
	// TenantNotes are what authors of pods should know of the tenant's own document that tightened Policy.
	TenantNotes []string
	Pools       []Pool
	// PoolsComplete says that no other pools will ever be: what fits none of them is refused instead of waiting.
	PoolsComplete bool
	// Guard says where the guard's image is; nil: none can be injected.
	Guard *GuardSettings
	// Explain asks for a report on every candidate, also when one was chosen.
	Explain bool
}

// Namespace is what a decision may know of the pod's namespace.
type Namespace struct {
	Name   string
	Labels map[string]string
}

// Why pods are left alone: stable words for metrics.
const (
	whyNoPolicy  = "no policy"
	whyOff       = "mode off"
	whyNoGPU     = "no GPU asked"
	whyNotAsked  = "no slice asked"
	whyOptedOut  = "share disabled"
	whyExclusive = "several GPUs, left exclusive"
	whyMirror    = "mirror pod"
)

// MaxContainers bounds the containers of a pod that gets a slice.
const MaxContainers = 64

// Decide answers one pod: left alone, rewritten under a Promise, or refused. It changes nothing it is given, does no
// I/O, and gives the same answer every time. Deciding its own output changes nothing.
func Decide(in Input) Decision {
	if _, mirror := in.Pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return leaveAlone(whyMirror)
	}
	if in.Policy == nil || in.Policy.Mode == ModeOff {
		return ungoverned(in).relaxed(in.Namespace)
	}
	d := decideGoverned(in)
	if d.Outcome != LeftAlone {
		d.Warnings = append(d.Warnings, in.TenantNotes...)
	}
	return d.Under(in.Policy).relaxed(in.Namespace)
}

// Tightened is the input with the policy as the tenant's own document (nil: none) tightens it.
func (in Input) Tightened(tenant *TenantDocument) Input {
	if tenant != nil && in.Policy != nil {
		in.Policy, in.TenantNotes = tenant.Tighten(in.Policy)
	}
	return in
}

// Under turns what enforce would do into what is to be done under a policy: warn lets refused pods pass unchanged with a
// warning, audit changes and refuses nothing.
func (d Decision) Under(p *Policy) Decision {
	d.Policy, d.Mode = p.Name, p.EnforcementMode
	d.Would = d.Outcome
	switch {
	case d.Mode == EnforceAudit && d.Outcome != LeftAlone:
		d.Outcome, d.Warnings = LeftAlone, nil
	case d.Mode == EnforceWarn && d.Outcome == Refused:
		d.Outcome = LeftAlone
		for _, v := range d.Violations {
			d.Warnings = append(d.Warnings, "would be refused: "+v.String())
		}
	}
	return d
}

// Judge is what violations come to that were found before a pod or workload could be decided: refused under enforce and
// under a policy that cannot be read, a warning under warn, a report under audit, nothing where no policy is in force.
func Judge(in Input, violations ...Violation) Decision {
	d := Decision{Outcome: Refused, Would: Refused, Violations: violations}
	switch {
	case in.PolicyError != nil:
		return d.relaxed(in.Namespace)
	case in.Policy == nil:
		return leaveAlone(whyNoPolicy)
	case in.Policy.Mode == ModeOff:
		return leaveAlone(whyOff)
	}
	return d.Under(in.Policy).relaxed(in.Namespace)
}

// changesPods says that a policy is in force which may change pods of the namespace.
func changesPods(in Input) bool {
	return in.Policy != nil && in.Policy.Mode != ModeOff && in.Policy.EnforcementMode != EnforceAudit
}

// ungoverned answers pods of namespaces without a policy: nothing is touched. A label of ours there is most likely a
// mistake, so its author is told; and a policy that cannot be read never means "no limits".
func ungoverned(in Input) Decision {
	why := whyNoPolicy
	if in.Policy != nil {
		why = whyOff
	}
	if in.PolicyError != nil && touchesGPU(in.Pod, in.Pools) {
		d := refuse(Decision{}, Violation{RulePolicy, "the namespace's policy cannot be read", fmt.Sprintf(
			"%v; ask those who run the cluster to mend it (gpuslice policy lint names every problem)", in.PolicyError)})
		d.Would = d.Outcome
		return d
	}
	d := leaveAlone(why)
	reason := fmt.Sprintf("no gpuslice policy governs namespace %q", in.Namespace.Name)
	if in.Policy != nil {
		reason = fmt.Sprintf("policy %s, which governs namespace %q, is off", in.Policy.Name, in.Namespace.Name)
	}
	if label := askingLabel(in.Pod); label != "" {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%s %s has no effect: %s", labelOrAnnotation(label), label, reason))
	}
	if asksFraction(in.Pod, nil) {
		d.Warnings = append(d.Warnings, "a fraction of a GPU is not read, and Kubernetes takes whole numbers only: "+reason)
	}
	return d
}

// decideGoverned answers a pod under a policy that is on.
func decideGoverned(in Input) Decision {
	if v := questioned(in.Pod); v != nil {
		return refuse(Decision{}, *v)
	}
	d := decideSlice(in)
	if d.Outcome != LeftAlone {
		return d
	}
	if found := tampering(&in, false); len(found) > 0 {
		return refuse(Decision{}, found...)
	}
	return takeUngiven(&in, d)
}

// decideSlice gives the pod the slices that it asks for, if it asks for any.
func decideSlice(in Input) Decision {
	if n := authorsContainers(&in.Pod.Spec); n > MaxContainers {
		if !touchesGPU(in.Pod, in.Pools) {
			return leaveAlone(whyNoGPU)
		}
		return refuse(Decision{}, Violation{RuleSize, "too many containers", fmt.Sprintf("the pod has %d; a pod with GPUs may have %d", n, MaxContainers)})
	}
	if v := reservedContainer(&in); v != nil {
		return refuse(Decision{}, *v)
	}
	bare, recorded, warnings := Revert(in.Pod, in.Pools)
	in.Pod = bare
	reader := requestReader{pod: bare, policy: in.Policy, pools: in.Pools, recorded: recorded}
	req := reader.read()
	if d, done := beforePlanning(in, req, len(reader.violations)); done {
		d.Warnings = append(reader.warnings, d.Warnings...)
		return d
	}
	d := Decision{Warnings: append(warnings, reader.warnings...)}
	if found := append(reader.violations, tampering(&in, true)...); len(found) > 0 {
		return refuse(d, found...)
	}
	return plan(in, req, d)
}

// beforePlanning answers the pods that need no plan. unread is how much of what they ask could not be read.
func beforePlanning(in Input, req Request, unread int) (Decision, bool) {
	switch {
	case req.Share == ShareDisabled && !req.Explicit:
		if in.Policy.OptOut || in.Policy.Mode == ModeOptIn || len(req.Containers) == 0 {
			return leaveAlone(whyOptedOut), true
		}
		return refuse(Decision{}, Violation{RulePolicy, "opting out is not allowed", fmt.Sprintf(
			"%s: %q is for policies with optOut: true, and %s is not one; remove the label", LabelShare, ShareDisabled, in.Policy.Name)}), true
	case req.Explicit:
		return Decision{}, false
	case len(req.Containers) == 0 && !touchesGPU(in.Pod, in.Pools):
		return leaveAlone(whyNoGPU), true
	case in.Policy.Mode == ModeOptIn && !asksFraction(in.Pod, in.Pools):
		return notAsked(in.Pod), true
	case len(req.Containers) == 0 && unread == 0:
		return leaveAlone(whyNoGPU), true
	}
	return severalGPUs(in, req)
}

// notAsked leaves a pod alone that asks for no slice. A label that only says more about one is most likely half an ask.
func notAsked(pod *corev1.Pod) Decision {
	d := leaveAlone(whyNotAsked)
	for _, label := range []string{LabelFramework, LabelContainer} {
		if _, ok := pod.Labels[label]; ok {
			d.Warnings = append(d.Warnings, fmt.Sprintf("label %s alone asks for no slice; add %s: \"8Gi\" (or what it needs)", label, LabelMemory))
		}
	}
	return d
}

func leaveAlone(why string) Decision {
	return Decision{Outcome: LeftAlone, Would: LeftAlone, Why: why}
}

func refuse(d Decision, violations ...Violation) Decision {
	d.Outcome = Refused
	d.Violations = append(d.Violations, violations...)
	return d
}

func allows(p *Policy, name StrategyName) bool {
	for _, s := range p.Strategies {
		if s == name {
			return true
		}
	}
	return false
}
