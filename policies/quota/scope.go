package quota

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Traits are the properties of pods by which scoped ResourceQuotas select.
type Traits struct {
	PriorityClass string `json:"priority,omitempty"`
	Terminating   bool   `json:"terminating,omitempty"` // it has a deadline
	BestEffort    bool   `json:"bestEffort,omitempty"`
}

// podScopes select the pods that a scoped ResourceQuota counts. nil is all of them. It is read-only, and the same for as
// long as its ResourceQuota is: scopes are compared by it.
type podScopes struct {
	scopes []corev1.ScopedResourceSelectorRequirement
}

// Narrow narrows the scope to the pods that a ResourceQuota counts. counts is false if it counts no pod at all;
// uncounted is the reason why the pods cannot be counted.
func (s *Scope) Narrow(spec corev1.ResourceQuotaSpec) (counts bool, uncounted string) {
	var scopes []corev1.ScopedResourceSelectorRequirement
	for _, name := range spec.Scopes {
		scopes = append(scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpExists})
	}
	if spec.ScopeSelector != nil {
		scopes = append(scopes, spec.ScopeSelector.MatchExpressions...)
	}
	for _, r := range scopes {
		switch r.ScopeName {
		case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
			corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass:
		case corev1.ResourceQuotaScopeVolumeAttributesClass:
			return false, ""
		default:
			uncounted = fmt.Sprintf("gpuslice does not read its scope %s", r.ScopeName)
		}
	}
	if len(scopes) > 0 {
		s.Pods = &podScopes{scopes}
	}
	return true, uncounted
}

// Match reports whether the quota counts a pod with these traits, as Kubernetes' own quota does: a scope with a name of its
// own has no operator that matters.
func (p *podScopes) Match(t Traits) bool {
	return p == nil || !slices.ContainsFunc(p.scopes, func(s corev1.ScopedResourceSelectorRequirement) bool { return !inScope(s, t) })
}

func inScope(s corev1.ScopedResourceSelectorRequirement, t Traits) bool {
	switch s.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return t.Terminating
	case corev1.ResourceQuotaScopeNotTerminating:
		return !t.Terminating
	case corev1.ResourceQuotaScopeBestEffort:
		return t.BestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !t.BestEffort
	}
	named := t.PriorityClass != ""
	switch s.Operator {
	case corev1.ScopeSelectorOpIn:
		return named && slices.Contains(s.Values, t.PriorityClass)
	case corev1.ScopeSelectorOpNotIn:
		return !named || !slices.Contains(s.Values, t.PriorityClass)
	case corev1.ScopeSelectorOpDoesNotExist:
		return !named
	}
	return named
}
