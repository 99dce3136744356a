package plan

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/rules"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// Result is the plan for a pod: a Promise, or the reason why it cannot have a slice.
type Result struct {
	Promise    *promise.Promise
	Violations []api.Violation
	Warnings   []string
	Candidates []api.CandidateReport // only where they are to be explained
}

// Plan finds where the request fits and the pod's edits there.
func Plan(in *Input, req api.Request) Result {
	if req.Strategy != "" && !in.Policy.Allows(req.Strategy) {
		requests, remedy := fmt.Sprintf("%s: %q", api.LabelStrategy, req.Strategy), "write one of these, or leave the label out"
		if in.Pod.Labels[api.LabelStrategy] == "" && len(req.Spellings) > 0 {
			requests = fmt.Sprintf("strategy %s in the words of %s", req.Strategy, message.JoinNames(req.Spellings))
			remedy = "leave the word for the strategy out"
		}
		return unplanned(api.Violation{Rule: api.RulePolicy, Reason: "strategy not allowed", Detail: fmt.Sprintf(
			"%s, policy %s allows %s; %s", requests, in.Policy.Name, message.JoinNames(in.Policy.Strategies), remedy)})
	}
	if os := in.Pod.Spec.OS; os != nil && os.Name == corev1.Windows {
		return unplanned(api.Violation{Rule: api.RuleStrategy, Reason: "Windows pods are not supported", Field: "spec.os.name",
			Detail: "spec.os.name is windows, and GPUs are shared on nodes of Linux alone; request no slice, or run it on Linux"})
	}
	wants, violations := resolveAll(in, req)
	if len(violations) > 0 {
		return unplanned(violations...)
	}
	fitting, unfit := candidates(in, req, wants)
	chosen, denied := choose(in, req, fitting)
	unfit = append(unfit, denied...)
	if chosen != nil && chosen.containers[0].pool.ClaimsInstances { // only a claim can name two kinds of devices, in order
		chosen = orShare(in, req, chosen, fitting)
	}
	var r Result
	if in.Explain {
		r.Candidates = report(evaluateAll(in, req, fitting), unfit, chosen)
	}
	if chosen == nil {
		if chosen, violations = pending(in, req, wants, unfit); len(violations) > 0 {
			r.Violations = violations
			return r
		}
		r.Warnings = append(r.Warnings, fmt.Sprintf("no known pool can take the pod now (%s); it requests %s and waits for a node that offers it",
			reasons(unfit), chosen.pool().Offer()))
	}
	if chosen.pool().Empty() {
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("no node offers %s now: the pod waits for one that offers %s", chosen.pool().Describe(), chosen.pool().Offer()))
	}
	chosen, same := equivalent(in, chosen, fitting) // more nodes to run on, at no other charge
	p, warnings := build(in, req, chosen, same)
	if v := p.TooLong(); v != nil {
		r.Violations = []api.Violation{*v}
		return r
	}
	r.Promise, r.Warnings = p, append(r.Warnings, warnings...)
	return r
}

func unplanned(violations ...api.Violation) Result { return Result{Violations: violations} }

func resolveAll(in *Input, req api.Request) (wants []want, violations []api.Violation) {
	for _, c := range req.Containers {
		resolved, v := resolve(in, req.Strategy, c)
		if v != nil {
			violations = append(violations, *v)
			continue
		}
		spec, init := podspec.ContainerNamed(&in.Pod.Spec, c.Name)
		next := want{request: c, resolved: resolved, class: classOf(in.Policy, c), spec: spec, init: init,
			sidecar: init && podspec.IsSidecar(spec), nearest: in.Policy.MIG.Rounding == modes.MIGNearest}
		if !c.Size.Named() { // nobody requested this size: a limit below it cuts it, rather than deny every pod
			next.most = in.Policy.Limits.PerContainer.Memory
		}
		wants = append(wants, next)
	}
	if len(wants) == 0 && len(violations) == 0 {
		violations = []api.Violation{*request.Invalid("spec.containers", "no container to slice",
			"the pod requests a slice but none of its containers would get it")}
	}
	return wants, violations
}

// choose returns the first candidate whose frameworks and enforcement are good enough, evaluated, and why those before it are not.
func choose(in *Input, req api.Request, fitting []candidate) (*candidate, []*FitError) {
	var unfit []*FitError
	for i := range fitting {
		c, v := evaluate(in, req, &fitting[i])
		if v == nil {
			return c, unfit
		}
		unfit = append(unfit, &FitError{kind: kindRule, pool: c.pool(), violation: v})
	}
	return nil, unfit
}

// orShare returns, in place of a candidate that gives instances, one whose claims take an instance where one is free and else a share:
// policy lists a strategy of claims next after that of instances. Where that would not do, the candidate stays as it is.
func orShare(in *Input, req api.Request, chosen *candidate, fitting []candidate) *candidate {
	if !chosen.claimsInstances() {
		return chosen
	}
	for i := range fitting {
		c := &fitting[i]
		switch {
		case c.strategy == chosen.strategy || c.order < chosen.order:
			continue
		case !c.strategy.Claims || c.lateness() != chosen.lateness(): // policy has something else between the two
			return chosen
		}
		if both, ok := c.afterInstances(in, chosen, fitting); ok {
			if both, v := evaluate(in, req, both); v == nil {
				return both
			}
		}
	}
	return chosen
}

// evaluate returns a candidate with the tiers of its slices, and the reason why it may not be used.
func evaluate(in *Input, req api.Request, bare *candidate) (*candidate, *api.Violation) {
	if v := rules.HostIPCElsewhere(in.Pod, bare.pool()); v != nil {
		return bare, v
	}
	if v := ruledOut(in, bare); v != nil {
		return bare, v
	}
	guard, noShim := planGuard(in, bare), ""
	if !guard.inject { // the check copies the shim into the pod
		noShim = "only a guarded pod brings it, and " + guard.why
	}
	c := bare.enforced(guard, func(i int) frameworks.Result {
		return profileOf(in, req, bare.strategy, &bare.containers[i], noShim)
	})
	for i := range c.containers { // before the tier: the author can change an argument, and no tier
		if p := &c.containers[i]; len(p.profile.Denials) > 0 {
			return c, deniedFramework(p.request.Name, p.profile.Denials[0])
		}
	}
	if c.strategy.Claims {
		if v := c.unclaimable(); v != nil {
			return c, v
		}
	}
	if minimum := in.Policy.MinimumEnforcement; minimum.Tier != "" {
		if v := belowMinimum(in, c); v != nil {
			return c, v
		}
	}
	return c, overLimits(in, c)
}

// enforced returns the candidate with a guard, the framework profile of each container, and the tiers that follow from both.
func (c candidate) enforced(guard guardPlan, profile func(container int) frameworks.Result) *candidate {
	c.guard, c.containers = guard, slices.Clone(c.containers)
	for i := range c.containers {
		p := &c.containers[i]
		p.profile = profile(i)
		p.tiers = tiersOf(&c, p)
	}
	return &c
}

// belowMinimum is the denial of a candidate that policy's minimum enforcement rules out.
func belowMinimum(in *Input, c *candidate) *api.Violation {
	tier, minimum := c.tier(), in.Policy.MinimumEnforcement
	switch ok := tier.AtLeast(minimum.Tier); {
	case !ok && c.pool().Awaited(): // whatever node comes, it is not known to enforce anything
		return &api.Violation{Rule: api.RuleEnforcement, Reason: "below the minimum enforcement", Detail: fmt.Sprintf(
			"policy %s demands %s; no known pool can take the pod, and of one yet to come nothing can be promised", in.Policy.Name, minimum.Tier)}
	case !ok:
		return &api.Violation{Rule: api.RuleEnforcement, Reason: "below the minimum enforcement",
			Detail: fmt.Sprintf("policy %s demands %s, and %s on %s reaches %s%s",
				in.Policy.Name, minimum.Tier, c.strategy.Name, c.pool().Describe(), tier, c.lacks(minimum.Tier))}
	}
	return nil
}

// deniedFramework is the denial of a container's framework.
func deniedFramework(container string, d frameworks.Denial) *api.Violation {
	return &api.Violation{Rule: api.RuleFramework, Container: container, Reason: cmp.Or(frameworkReasons[d.Reason], d.Reason),
		Detail: fmt.Sprintf("container %q: %s", container, d.Detail)}
}

// frameworkReasons are profiles' reasons in words of the other denials.
var frameworkReasons = map[string]string{
	frameworks.DeniedFramework: "unknown framework",
	frameworks.DeniedArgument:  "framework argument",
	frameworks.DeniedConflict:  "framework settings contradict each other",
}

// lacks explains why the tiers that would be strong enough, and in which a pod has a part, do not hold.
func (c *candidate) lacks(minimum api.Tier) string {
	text := ""
	if api.TierGuard.AtLeast(minimum) && c.guard.why != "" {
		text += "; no guard enforces it: " + c.guard.why
	}
	for i := range c.containers {
		if p := &c.containers[i]; api.TierFramework.AtLeast(minimum) && len(p.tiers) == 0 && p.profile.NotCapped != "" {
			text += fmt.Sprintf("; no framework cap in %q: %s", p.request.Name, p.profile.NotCapped)
		}
	}
	return text
}

// tier is the strongest tier that holds for every container.
func (c *candidate) tier() api.Tier {
	weakest := api.TierHardware
	for i := range c.containers {
		if tier := strongest(c.containers[i].tiers); weakest.AtLeast(tier) {
			weakest = tier
		}
	}
	return weakest
}

// tiersOf lists the tiers of a container's slice, strongest first.
func tiersOf(c *candidate, p *placed) []api.Tier {
	tiers := make([]api.Tier, 0, 4)
	strategy := c.strategy
	if strategy.Tier != api.TierNone && (strategy.Tier != api.TierMPS || p.size.limit > 0) { // an MPS daemon holds a number of bytes
		tiers = append(tiers, strategy.Tier)
	}
	if strategy.DriverLimits && p.pool.DriverLimits && p.size.limit > 0 {
		tiers = append(tiers, api.TierDriver)
	}
	if c.guard.holds && p.size.limit > 0 {
		tiers = append(tiers, api.TierGuard)
	}
	if p.profile.Capped {
		tiers = append(tiers, api.TierFramework)
	}
	slices.SortFunc(tiers, func(a, b api.Tier) int { return b.Rank() - a.Rank() })
	return tiers
}

// profileOf is the result of the framework profiles for the container; noShim is the reason why its pod brings no shim.
// Whole devices and unknown slices have no cap.
func profileOf(in *Input, req api.Request, strategy *strategies.Strategy, p *placed, noShim string) frameworks.Result {
	if strategy.Whole() || p.size.limit == 0 { // nobody else is on the device, or there is no number to write
		return frameworks.Result{}
	}
	view := strategy.View
	if view != frameworks.ViewSliced && (p.pool.TotalMayBeLimit() || p.preferred.profile != "") { // the total may be the device's, or less
		view = frameworks.ViewUnknown
	}
	input := frameworks.Input{
		Container: p.spec, Pod: in.Pod, Framework: req.Framework,
		SliceBytes: p.size.slice.Bytes(), LimitBytes: p.size.limit.Bytes(), TotalBytes: p.pool.Total().Bytes(),
		AllowanceBytes: in.Policy.Allowance(p.request.GPUs).Bytes(), Processes: p.size.procs, GPUs: int(p.request.GPUs),
		View: view, DeviceAlone: p.pool.Replicas == 1, NoShim: noShim, Switches: in.Policy.Frameworks,
	}
	detected := frameworks.For(input)
	// The scheduler chooses between instance and share, and the fraction of one is wrong for the other.
	if p.preferred.profile != "" && detected.NotCapped != "" && detected.Framework != "" {
		detected.NotCapped = "what is a part of the device is another part of the instance that it may get"
	}
	// What the author writes, or the image shows, is surer than policy's default.
	if req.Framework != "" || detected.Framework != "" || in.Policy.DefaultFramework == "" {
		return detected
	}
	input.Framework = in.Policy.DefaultFramework
	byDefault := frameworks.For(input)
	if byDefault.VersionSource == frameworks.VersionFromLabel {
		byDefault.VersionSource = frameworks.VersionFromPolicy
	}
	return byDefault
}

// equivalent returns the candidates that give the pod the very same as chosen, which stay allowed, and chosen as it counts for the most
// of them.
func equivalent(in *Input, chosen *candidate, fitting []candidate) (counted *candidate, same []*candidate) {
	for i := range fitting {
		other := &fitting[i]
		if other.pool() == chosen.pool() || other.strategy.Name != chosen.strategy.Name {
			continue
		}
		other = other.enforced(planGuard(in, other), func(i int) frameworks.Result { return chosen.containers[i].profile })
		if !chosen.equals(other) { // one promise is for all of them, so that it has to be true on each
			continue
		}
		if counted := chosen.countedAs(other); overLimits(in, counted) == nil {
			chosen, same = counted, append(same, other)
		}
	}
	return chosen, same
}
