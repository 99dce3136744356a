package quota

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Traits are what scoped ResourceQuotas tell pods apart by.
type Traits struct {
	PriorityClass string `json:"priority,omitempty"`
	Terminating   bool   `json:"terminating,omitempty"` // it has a deadline
	BestEffort    bool   `json:"bestEffort,omitempty"`
}

// TraitsOf reads a pod as the API server admits or stores it: the quality of service is the server's own verdict.
func TraitsOf(pod *corev1.Pod) Traits {
	deadline := pod.Spec.ActiveDeadlineSeconds
	return Traits{
		PriorityClass: pod.Spec.PriorityClassName,
		Terminating:   deadline != nil && *deadline >= 0,
		BestEffort:    pod.Status.QOSClass == corev1.PodQOSBestEffort,
	}
}

// Pods are the pods that a scoped ResourceQuota counts. nil is all of them. It is read-only, and the same for as
// long as its ResourceQuota is: scopes are compared by it.
type Pods struct {
	scopes []corev1.ScopedResourceSelectorRequirement
}

// PodsOf reads the scopes of a ResourceQuota. counts is false where it counts no pod at all; uncounted says why the
// pods cannot be counted.
func PodsOf(spec corev1.ResourceQuotaSpec) (pods *Pods, counts bool, uncounted string) {
	var scopes []corev1.ScopedResourceSelectorRequirement
	for _, s := range spec.Scopes {
		scopes = append(scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: s, Operator: corev1.ScopeSelectorOpExists})
	}
	if spec.ScopeSelector != nil {
		scopes = append(scopes, spec.ScopeSelector.MatchExpressions...)
	}
	for _, s := range scopes {
		switch s.ScopeName {
		case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
			corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass:
		case corev1.ResourceQuotaScopeVolumeAttributesClass:
			return nil, false, ""
		default:
			uncounted = fmt.Sprintf("gpuslice does not read its scope %s", s.ScopeName)
		}
	}
	if len(scopes) == 0 {
		return nil, true, ""
	}
	return &Pods{scopes}, true, uncounted
}

// Match reports whether the quota counts a pod with these traits, as Kubernetes' own quota does: a scope with a name of its
// own has no operator that matters.
func (p *Pods) Match(t Traits) bool {
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
