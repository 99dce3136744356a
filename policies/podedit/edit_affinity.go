package podedit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// affinityEdit is the required node affinity that keeps the pod on the pools it was planned for.
type affinityEdit struct{}

// Apply ANDs the terms into each required term of the pod. They may be there already, from an earlier pass: then a term that
// has them stays as it is. Else they are added even if the author wrote some of the same, so that removeRequiredTerms can
// remove exactly the added ones.
func (affinityEdit) Apply(pod *corev1.Pod, old, next *promise.Promise) {
	spec, terms := &pod.Spec, next.Affinity
	if len(terms) == 0 {
		return
	}
	terms = (&corev1.NodeSelector{NodeSelectorTerms: terms}).DeepCopy().NodeSelectorTerms
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
		required.NodeSelectorTerms = terms
		return
	}
	carried := sameTerms(old.Affinity, terms)
	var out []corev1.NodeSelectorTerm
	for _, have := range required.NodeSelectorTerms {
		kept := len(have.MatchExpressions)+len(have.MatchFields) == 0 || // it matches no node, and would match ours
			carried && slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool { return podspec.RunOf(have, t) >= 0 })
		if kept {
			out = append(out, have)
			continue
		}
		for _, t := range terms {
			joined := *have.DeepCopy()
			joined.MatchExpressions = append(joined.MatchExpressions, t.DeepCopy().MatchExpressions...)
			out = append(out, joined)
		}
	}
	required.NodeSelectorTerms = out
}

// Revert leaves terms that next writes again in place: terms that another webhook wrote behind them keep their place.
func (affinityEdit) Revert(pod *corev1.Pod, old, next *promise.Promise) {
	if !sameTerms(old.Affinity, next.Affinity) {
		removeRequiredTerms(&pod.Spec, old.Affinity)
	}
}

// Restore puts our terms back where the update's affinity is the old one without them. Any other is for the server to
// judge: a scheduling gate may be lifted together with a narrower affinity.
func (affinityEdit) Restore(old, updated *corev1.Pod, given *promise.Promise) {
	if len(given.Affinity) == 0 {
		return
	}
	bare := corev1.PodSpec{Affinity: old.Spec.Affinity.DeepCopy()}
	removeRequiredTerms(&bare, given.Affinity)
	if equality.Semantic.DeepEqual(updated.Spec.Affinity, bare.Affinity) {
		updated.Spec.Affinity = old.Spec.Affinity.DeepCopy()
	}
}

// removeRequiredTerms removes the terms that Apply added.
func removeRequiredTerms(spec *corev1.PodSpec, terms []corev1.NodeSelectorTerm) {
	required := requiredNodes(spec)
	if len(terms) == 0 || required == nil {
		return
	}
	var out []corev1.NodeSelectorTerm
	for _, have := range required.NodeSelectorTerms {
		if at, n := podspec.LongestRun(have, terms); n > 0 {
			have.MatchExpressions = slices.Delete(slices.Clone(have.MatchExpressions), at, at+n)
		}
		// One term of the author's became one for each of ours: without these they are the same again.
		known := slices.ContainsFunc(out, func(t corev1.NodeSelectorTerm) bool {
			return podspec.SameExpressions(t.MatchExpressions, have.MatchExpressions) && podspec.SameExpressions(t.MatchFields, have.MatchFields)
		})
		if !known && len(have.MatchExpressions)+len(have.MatchFields) > 0 { // an empty one was ours alone
			out = append(out, have)
		}
	}
	if required.NodeSelectorTerms = out; len(out) == 0 {
		dropRequiredNodes(spec)
	}
}

func requiredNodes(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// dropRequiredNodes removes the required node affinity, and parents that are empty without it.
func dropRequiredNodes(spec *corev1.PodSpec) {
	node := spec.Affinity.NodeAffinity
	node.RequiredDuringSchedulingIgnoredDuringExecution = nil
	if len(node.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		spec.Affinity.NodeAffinity = nil
	}
	if spec.Affinity.NodeAffinity == nil && spec.Affinity.PodAffinity == nil && spec.Affinity.PodAntiAffinity == nil {
		spec.Affinity = nil
	}
}

func sameTerms(a, b []corev1.NodeSelectorTerm) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.NodeSelectorTerm) bool {
		return podspec.SameExpressions(a.MatchExpressions, b.MatchExpressions)
	})
}
