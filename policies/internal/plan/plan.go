package plan

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/rulename"
	"github.com/gpuslice/gpuslice/policies/internal/rules"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// Result is what was planned for a pod: a Promise, or why it cannot have a slice.
type Result struct {
	Promise    *promise.Promise
	Violations []api.Violation
	Warnings   []string
	Candidates []api.CandidateReport // only where they are to be explained
}

// Plan finds where the request fits and what the pod must carry there.
func Plan(in *Input, req api.Request) Result {
	if req.Strategy != "" && !in.Policy.Allows(req.Strategy) {
		return unplanned(api.Violation{Rule: api.RulePolicy, Reason: "strategy not allowed", Detail: fmt.Sprintf(
			"%s: %q, policy %s allows %s; write one of these, or leave the label out", api.LabelStrategy, req.Strategy, in.Policy.Name, message.JoinNames(in.Policy.Strategies))})
	}
	if os := in.Pod.Spec.OS; os != nil && os.Name == corev1.Windows {
		return unplanned(api.Violation{Rule: rulename.Strategy, Reason: "Windows pods are not supported", Detail: "spec.os.name is windows, and GPUs are shared on nodes of Linux alone; request no slice, or run it on Linux"})
	}
	wants, violations := resolveAll(in, req)
	if len(violations) > 0 {
		return unplanned(violations...)
	}
	fitting, unfit := candidates(in, req, wants)
	chosen, denied := choose(in, req, fitting)
	unfit = append(unfit, denied...)
	if chosen != nil && chosen.containers[0].pool.ClaimsInstances {
		chosen = orShare(in, req, chosen, fitting)
	}
	var r Result
	if in.Explain {
		r.Candidates = report(fitting, append(slices.Clone(unfit), evaluateRest(in, req, fitting, chosen)...), chosen)
	}
	if chosen == nil {
		if chosen, violations = pending(in, req, wants, unfit); len(violations) > 0 {
			r.Violations = violations
			return r
		}
		r.Warnings = append(r.Warnings, fmt.Sprintf("no known pool can take the pod now (%s); it requests %s and waits for a node that offers it",
			reasons(unfit), chosen.pool().Offer()))
	}
	if chosen.pool().Remembered() {
		r.Warnings = append(r.Warnings, fmt.Sprintf("no node offers %s now: the pod waits for one that offers %s", chosen.pool().Describe(), chosen.pool().Offer()))
	}
	p, warnings := build(in, req, chosen, equivalent(in, chosen, fitting))
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
		resolved, v := resolve(in.Policy, req.Strategy, c)
		if v != nil {
			violations = append(violations, *v)
			continue
		}
		spec, init := podspec.ContainerNamed(&in.Pod.Spec, c.Name)
		next := want{request: c, resolved: resolved, class: classOf(in.Policy, c), spec: spec, init: init, nearest: in.Policy.MIG.Rounding == modes.MIGNearest}
		if !c.Size.Named() {
			next.most = in.Policy.Limits.PerContainer.Memory
		}
		wants = append(wants, next)
	}
	if len(wants) == 0 && len(violations) == 0 {
		violations = []api.Violation{*request.Invalid("no container to slice", "the pod requests a slice but none of its containers would get it")}
	}
	return wants, violations
}

// choose returns the first candidate whose frameworks and enforcement are good enough, and why those before it are not.
func choose(in *Input, req api.Request, fitting []candidate) (*candidate, []*FitError) {
	var unfit []*FitError
	for i := range fitting {
		c := &fitting[i]
		if v := evaluate(in, req, c); v != nil {
			unfit = append(unfit, &FitError{kind: kindRule, pool: c.pool(), violation: v})
			continue
		}
		return c, unfit
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
		case !c.strategy.Claims || c.lateness() != chosen.lateness():
			return chosen
		}
		both, ok := c.afterInstances(in, chosen, fitting)
		if ok && evaluate(in, req, &both) == nil {
			*c = both
			return c
		}
	}
	return chosen
}

// evaluate adds to a placement what holds its slices, and returns why it may not be used.
func evaluate(in *Input, req api.Request, c *candidate) *api.Violation {
	if v := rules.HostIPCElsewhere(in.Pod, c.pool()); v != nil {
		return v
	}
	c.guard = planGuard(in, c)
	for i := range c.containers {
		p := &c.containers[i]
		p.profile = profileOf(in, req, c.strategy, p, c.guard.noShim())
		if v := deniedFramework(p, p.profile); v != nil {
			return v
		}
		p.tiers = tiersOf(c, p)
	}
	if c.strategy.Claims {
		if v := c.unclaimable(); v != nil {
			return v
		}
	}
	tier, lacking := c.tier(), unproven(in, c)
	minimum := in.Policy.MinimumEnforcement
	switch ok := tier.AtLeast(minimum.Tier); {
	case !ok && c.pool().Awaited():
		return &api.Violation{Rule: rulename.Enforcement, Reason: "below the minimum enforcement", Detail: fmt.Sprintf(
			"policy %s demands %s; no known pool can take the pod, and of one yet to come nothing can be promised", in.Policy.Name, minimum.Tier)}
	case !ok:
		return &api.Violation{Rule: rulename.Enforcement, Reason: "below the minimum enforcement", Detail: fmt.Sprintf("policy %s demands %s, and %s on %s reaches %s%s",
			in.Policy.Name, minimum.Tier, c.strategy.Name, c.pool().Describe(), tier, c.lacks(minimum.Tier))}
	case lacking != nil:
		return &api.Violation{Rule: rulename.Enforcement, Reason: "not proven", Detail: fmt.Sprintf("policy %s demands %s, proven on the GPU, and on %s %s; "+
			"an administrator runs gpuslice verify --on-gpu -n NAMESPACE --pool %s", in.Policy.Name, minimum.Tier, lacking.Describe(), cmp.Or(lacking.Unproven, "nothing was tried"), lacking.Name)}
	}
	return overLimits(in.Policy, c)
}

// deniedFramework is what the container's framework is denied for, or nil.
func deniedFramework(p *placed, profile frameworks.Result) *api.Violation {
	if len(profile.Denials) == 0 {
		return nil
	}
	r := profile.Denials[0]
	return &api.Violation{Rule: rulename.Framework, Reason: cmp.Or(frameworkReasons[r.Reason], r.Reason), Detail: fmt.Sprintf("container %q: %s", p.request.Name, r.Detail)}
}

// frameworkReasons are profiles' reasons in words of the other denials.
var frameworkReasons = map[string]string{
	frameworks.DeniedFramework: "unknown framework",
	frameworks.DeniedArgument:  "framework argument",
	frameworks.DeniedConflict:  "framework settings contradict each other",
}

// lacks says why the tiers do not hold that would be strong enough and that a pod has a part in.
func (c *candidate) lacks(minimum api.Tier) string {
	text := ""
	if api.TierGuard.AtLeast(minimum) && c.guard.why != "" {
		text += "; no guard holds it: " + c.guard.why
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

// tiersOf lists what holds a container's slice, strongest first.
func tiersOf(c *candidate, p *placed) []api.Tier {
	tiers := make([]api.Tier, 0, 4)
	strategy := c.strategy
	if strategy.Tier != api.TierNone && (strategy.Tier != api.TierMPS || p.size.limit > 0) {
		tiers = append(tiers, strategy.Tier)
	}
	if driverHolds(strategy, p) {
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

func driverHolds(strategy *strategies.Strategy, p *placed) bool {
	return p.pool.DriverLimits && p.size.limit > 0 && strategy.DriverLimits
}

// profileOf is what the framework profiles give the container; noShim is why its pod brings no shim. Whole devices and
// unknown slices have no cap.
func profileOf(in *Input, req api.Request, strategy *strategies.Strategy, p *placed, noShim string) frameworks.Result {
	if strategy.Whole() || p.size.limit == 0 {
		return frameworks.Result{}
	}
	view := strategy.View
	if view != frameworks.ViewSliced && (p.pool.TotalMayBeLimit() || p.first.profile != "") {
		view = frameworks.ViewUnknown
	}
	input := frameworks.Input{
		Container: p.spec, Pod: in.Pod, Framework: req.Framework,
		SliceBytes: p.size.slice.Bytes(), LimitBytes: p.size.limit.Bytes(), TotalBytes: p.pool.Total().Bytes(),
		AllowanceBytes: in.Policy.Allowance(p.request.GPUs).Bytes(), Processes: p.size.procs, GPUs: int(p.request.GPUs),
		View: view, DeviceAlone: p.pool.Replicas == 1, NoShim: noShim, Switches: in.Policy.Frameworks,
	}
	detected := frameworks.For(input)
	if p.first.profile != "" && detected.NotCapped != "" && detected.Framework != "" {
		detected.NotCapped = "what is a part of the device is another part of the instance that it may get"
	}
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

// equivalent returns the candidates that give the pod the very same as chosen: they stay allowed, and chosen counts for the most of them.
func equivalent(in *Input, chosen *candidate, fitting []candidate) []*candidate {
	var same []*candidate
	for i := range fitting {
		c := &fitting[i]
		if c == chosen {
			continue
		}
		c.guard = planGuard(in, c)
		for j := range c.containers { // the tiers of those behind the chosen one were not computed: they follow the pool
			c.containers[j].profile = chosen.containers[j].profile
			c.containers[j].tiers = tiersOf(c, &c.containers[j])
		}
		if chosen.equals(c) && unproven(in, c) == nil && chosen.counts(c, in.Policy) {
			same = append(same, c)
		}
	}
	return same
}

// unproven is the first of the candidate's pools on which nothing current proves the tier that policy demands proof of; nil: none.
func unproven(in *Input, c *candidate) *pools.Pool {
	minimum := in.Policy.MinimumEnforcement
	for i := range c.containers {
		if minimum.Proven && !slices.Contains(c.containers[i].pool.Proven, minimum.Tier) {
			return c.containers[i].pool
		}
	}
	return nil
}

// counts makes the candidate count for what it would on another one too, and reports whether policy's limits allow that.
func (c *candidate) counts(other *candidate, p *config.Policy) bool {
	before := slices.Clone(c.containers)
	for i := range c.containers {
		c.containers[i].share = max(c.containers[i].share, other.containers[i].share)
	}
	if overLimits(p, c) == nil {
		return true
	}
	c.containers = before
	return false
}
