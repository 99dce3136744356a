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
		term := termOf(c)
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

func dependsOnPool(in *Input, chosen *candidate, same []*candidate) bool {
	for i := range chosen.containers {
		p := &chosen.containers[i]
		if p.dependsOnT() || p.pool.MPSProvider == MPSHostDaemon || p.pool.DriverLimits {
			return true
		}
	}
	among := func(site string) bool {
		return site == chosen.pool().Site || slices.ContainsFunc(same, func(c *candidate) bool { return c.pool().Site == site })
	}
	return slices.ContainsFunc(in.Pools, func(p Pool) bool { return p.Resource == chosen.pool().Resource && !among(p.Site) })
}

func termOf(c *candidate) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	for i := range c.containers {
		for _, r := range c.containers[i].pool.Requirements {
			if !hasExpression(term.MatchExpressions, r) {
				term.MatchExpressions = append(term.MatchExpressions, *r.DeepCopy())
			}
		}
	}
	oldest := corev1.NodeSelectorRequirement{Key: labelDriverMajor, Operator: corev1.NodeSelectorOpGt, Values: []string{formatInt(firstGuardDriver - 1)}}
	if c.guard.holds && !c.pool().Declared && !hasExpression(term.MatchExpressions, oldest) {
		term.MatchExpressions = append(term.MatchExpressions, oldest) // nodes that join later may have an older driver
	}
	return term
}

// holdAffinity ANDs the terms into each required term that the pod has. Terms that already say so stay as they are.
func holdAffinity(spec *corev1.PodSpec, terms []corev1.NodeSelectorTerm) {
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
		if slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool { return includes(have, t) }) {
			out = append(out, have)
			continue
		}
		for _, t := range deepCopyTerms(terms) {
			joined := *have.DeepCopy()
			for _, e := range t.MatchExpressions {
				if !hasExpression(joined.MatchExpressions, e) {
					joined.MatchExpressions = append(joined.MatchExpressions, e)
				}
			}
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
		for _, t := range terms {
			if !includes(have, t) {
				continue
			}
			have.MatchExpressions = slices.DeleteFunc(slices.Clone(have.MatchExpressions), func(e corev1.NodeSelectorRequirement) bool {
				return hasExpression(t.MatchExpressions, e)
			})
			break
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

func includes(term, part corev1.NodeSelectorTerm) bool {
	for _, e := range part.MatchExpressions {
		if !hasExpression(term.MatchExpressions, e) {
			return false
		}
	}
	return true
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

func deepCopyTerms(terms []corev1.NodeSelectorTerm) []corev1.NodeSelectorTerm {
	out := make([]corev1.NodeSelectorTerm, len(terms))
	for i := range terms {
		terms[i].DeepCopyInto(&out[i])
	}
	return out
}
