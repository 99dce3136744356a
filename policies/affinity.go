package policies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
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
			return nil // a pool that no label tells apart: every node of its resource is as good
		}
		if !slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
			return sameExpressions(t.MatchExpressions, term.MatchExpressions)
		}) {
			terms = append(terms, term)
		}
	}
	return terms
}

// dependsOnPool says that the pod is something else on a node of another pool: what it carries, or what it is counted in.
func dependsOnPool(in *Input, chosen *candidate, same []*candidate) bool {
	if len(in.Policy.Quota.Pools) > 0 || in.Policy.TenantQuota != nil && len(in.Policy.TenantQuota.Pools) > 0 {
		return true
	}
	for i := range chosen.containers {
		p := &chosen.containers[i]
		if p.dependsOnT() || p.pool.provider().ChangesPods() || p.pool.DriverLimits {
			return true
		}
	}
	among := func(site string) bool {
		return site == chosen.pool().Site || slices.ContainsFunc(same, func(c *candidate) bool { return c.pool().Site == site })
	}
	return slices.ContainsFunc(in.Pools, func(p Pool) bool { return p.Resource == chosen.pool().Resource && !among(p.Site) })
}

func termOf(in *Input, c *candidate) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	for i := range c.containers {
		for _, r := range c.containers[i].pool.Requirements {
			if !hasExpression(term.MatchExpressions, r) {
				term.MatchExpressions = append(term.MatchExpressions, *r.DeepCopy())
			}
		}
	}
	if p := c.pool(); p.TrustDomain == "" && !p.Declared && trustedElsewhere(in, p.Resource) {
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: LabelTrustDomain, Operator: corev1.NodeSelectorOpDoesNotExist})
	}
	above := func(e corev1.NodeSelectorRequirement) bool {
		return e.Key == labelDriverMajor && e.Operator == corev1.NodeSelectorOpGt
	}
	if c.guard.holds && !c.pool().Declared && !slices.ContainsFunc(term.MatchExpressions, above) {
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{ // nodes that join later may have an older driver
			Key: labelDriverMajor, Operator: corev1.NodeSelectorOpGt, Values: []string{formatInt(firstGuardDriver - 1)}})
	}
	return term
}

// trustedElsewhere says that nodes of a trust domain offer the resource too: where nothing but the domain tells nodes
// apart, those of none have to be told apart by its absence.
func trustedElsewhere(in *Input, resource string) bool {
	return slices.ContainsFunc(in.Pools, func(p Pool) bool { return p.Resource == resource && p.TrustDomain != "" })
}

// holdAffinity ANDs the terms into each required term that the pod has. held says that they may stand there already,
// from an earlier pass: then a term that has them stays as it is. Else they are added even where the author wrote some
// of the same, so that releaseAffinity can take back exactly what was added.
func holdAffinity(spec *corev1.PodSpec, terms []corev1.NodeSelectorTerm, held bool) {
	if len(terms) == 0 {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	node := spec.Affinity.NodeAffinity
	if node.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		node.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	required := node.RequiredDuringSchedulingIgnoredDuringExecution
	if len(required.NodeSelectorTerms) == 0 {
		required.NodeSelectorTerms = deepCopyTerms(terms)
		return
	}
	var out []corev1.NodeSelectorTerm
	for _, have := range required.NodeSelectorTerms {
		if len(have.MatchExpressions) == 0 && len(have.MatchFields) == 0 { // it matches no node, and would match ours
			out = append(out, have)
			continue
		}
		if held && slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool { return runOf(have, t) >= 0 }) {
			out = append(out, have)
			continue
		}
		for _, t := range deepCopyTerms(terms) {
			joined := *have.DeepCopy()
			joined.MatchExpressions = append(joined.MatchExpressions, t.MatchExpressions...)
			out = append(out, joined)
		}
	}
	required.NodeSelectorTerms = out
}

// releaseAffinity takes back what holdAffinity wrote for terms.
func releaseAffinity(spec *corev1.PodSpec, terms []corev1.NodeSelectorTerm) {
	if len(terms) == 0 || spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return
	}
	node := spec.Affinity.NodeAffinity
	required := node.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return
	}
	var out []corev1.NodeSelectorTerm
	for _, have := range required.NodeSelectorTerms {
		if at, n := longestRun(have, terms); n > 0 {
			have.MatchExpressions = slices.Delete(slices.Clone(have.MatchExpressions), at, at+n)
		}
		empty := len(have.MatchExpressions) == 0 && len(have.MatchFields) == 0
		known := slices.ContainsFunc(out, func(t corev1.NodeSelectorTerm) bool {
			return sameExpressions(t.MatchExpressions, have.MatchExpressions) && sameExpressions(t.MatchFields, have.MatchFields)
		})
		if !empty && !known {
			out = append(out, have)
		}
	}
	if required.NodeSelectorTerms = out; len(out) > 0 {
		return
	}
	node.RequiredDuringSchedulingIgnoredDuringExecution = nil
	if len(node.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		spec.Affinity.NodeAffinity = nil
	}
	if spec.Affinity.NodeAffinity == nil && spec.Affinity.PodAffinity == nil && spec.Affinity.PodAntiAffinity == nil {
		spec.Affinity = nil
	}
}

// longestRun is where the longest of the terms that term has begins in it, and its length: of two pools one may demand
// all that the other does.
func longestRun(term corev1.NodeSelectorTerm, terms []corev1.NodeSelectorTerm) (at, n int) {
	for _, t := range terms {
		if i := runOf(term, t); i >= 0 && len(t.MatchExpressions) > n {
			at, n = i, len(t.MatchExpressions)
		}
	}
	return at, n
}

// runOf is where the expressions of part last stand in term, one after the other; -1 where they do not.
func runOf(term, part corev1.NodeSelectorTerm) int {
	n := len(part.MatchExpressions)
	for i := len(term.MatchExpressions) - n; i >= 0; i-- {
		if sameExpressions(term.MatchExpressions[i:i+n], part.MatchExpressions) {
			return i
		}
	}
	return -1
}

func hasExpression(list []corev1.NodeSelectorRequirement, r corev1.NodeSelectorRequirement) bool {
	return slices.ContainsFunc(list, func(e corev1.NodeSelectorRequirement) bool { return sameExpression(e, r) })
}

func sameExpression(a, b corev1.NodeSelectorRequirement) bool {
	return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
}

func sameExpressions(a, b []corev1.NodeSelectorRequirement) bool {
	return slices.EqualFunc(a, b, sameExpression)
}

func sameTerms(a, b []corev1.NodeSelectorTerm) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.NodeSelectorTerm) bool {
		return sameExpressions(a.MatchExpressions, b.MatchExpressions)
	})
}

func deepCopyTerms(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
	out := make([]corev1.NodeSelectorTerm, len(terms))
	for i := range terms {
		terms[i].DeepCopyInto(&out[i])
	}
	return out
}
