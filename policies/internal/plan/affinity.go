package plan

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// affinityFor returns the terms that keep the pod on the pools it was planned for, one for each of them. There are none
// where nothing that the pod carries depends on the pool: autoscalers often do not know the labels they would name.
func affinityFor(in *Input, chosen *candidate, same []*candidate) []corev1.NodeSelectorTerm {
	if !dependsOnPool(in, chosen, same) {
		return nil
	}
	var terms []corev1.NodeSelectorTerm
	for _, c := range append([]*candidate{chosen}, same...) {
		term := termOf(in, c)
		if len(term.MatchExpressions) == 0 {
			return nil // no label distinguishes the pool: every node of its resource is as good
		}
		if !slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
			return podspec.SameExpressions(t.MatchExpressions, term.MatchExpressions)
		}) {
			terms = append(terms, term)
		}
	}
	return terms
}

// dependsOnPool reports whether another pool would change the pod: its content, or its quotas.
func dependsOnPool(in *Input, chosen *candidate, same []*candidate) bool {
	if len(in.Policy.Quota.Pools) > 0 || in.Policy.TenantQuota != nil && len(in.Policy.TenantQuota.Pools) > 0 { // counted by pool
		return true
	}
	for i := range chosen.containers {
		p := &chosen.containers[i]
		// Amounts computed from a device, a provider's edits and the driver's limits are right on this pool alone.
		if p.dependsOnDevice() && !p.pool.Sharing().Claims || p.pool.Provider().ChangesPods() || p.pool.DriverLimits {
			return true
		}
	}
	among := func(site string) bool {
		return site == chosen.pool().Site || slices.ContainsFunc(same, func(c *candidate) bool { return c.pool().Site == site })
	}
	return slices.ContainsFunc(in.Pools, func(p pools.Pool) bool { return chosen.mayGet(&p) && !among(p.Site) })
}

// mayGet reports whether the pod could come to a node of the pool by its requests. A claim names its class, and the
// size of its device if that matters.
func (c *candidate) mayGet(p *pools.Pool) bool {
	for i := range c.containers {
		of := &c.containers[i]
		if of.preferred.profile != "" && p.ClaimsInstances && p.MIGProfile == of.preferred.profile {
			return true
		}
		namesDevice := p.Sharing().Claims && of.dependsOnDevice()
		// A claim can name the size of its device; nodes of any size offer a resource of the same name.
		if of.pool.Offer() == p.Offer() && (!namesDevice || of.pool.DeviceMemory == p.DeviceMemory) {
			return true
		}
	}
	return false
}

func termOf(in *Input, c *candidate) corev1.NodeSelectorTerm {
	p, term := c.pool(), corev1.NodeSelectorTerm{MatchExpressions: make([]corev1.NodeSelectorRequirement, 0, len(c.pool().Requirements)+1)}
	for i := range c.containers {
		for _, r := range c.containers[i].pool.Requirements {
			if !slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return podspec.SameExpression(e, r) }) {
				term.MatchExpressions = append(term.MatchExpressions, r) // its values stay the pool's: the edit copies them
			}
		}
	}
	// If only a trust domain distinguishes nodes that offer the resource, those of none have to be selected by its absence.
	elsewhere := func(other pools.Pool) bool { return other.Resource == p.Resource && other.TrustDomain != "" }
	if p.TrustDomain == "" && !p.Declared && slices.ContainsFunc(in.Pools, elsewhere) {
		term.MatchExpressions = append(term.MatchExpressions,
			corev1.NodeSelectorRequirement{Key: strategies.LabelTrustDomain, Operator: corev1.NodeSelectorOpDoesNotExist})
	}
	above := func(e corev1.NodeSelectorRequirement) bool {
		return e.Key == nvidia.LabelDriverMajor && e.Operator == corev1.NodeSelectorOpGt
	}
	guarded := (c.guard.holds || c.guard.failed) && !c.guard.agent
	if guarded && !p.Declared && p.DeviceClass == "" && !slices.ContainsFunc(term.MatchExpressions, above) {
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{ // nodes that join later may have an older driver
			Key: nvidia.LabelDriverMajor, Operator: corev1.NodeSelectorOpGt, Values: []string{strconv.Itoa(nvidia.DriverForGuard - 1)}})
	}
	return term
}
