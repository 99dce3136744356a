package quota_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// TestNarrow: a scoped ResourceQuota counts the pods that Kubernetes' own quota counts.
func TestNarrow(t *testing.T) {
	t.Parallel()
	priority := func(operator corev1.ScopeSelectorOperator, values ...string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values}}}}
	}
	scopes := func(names ...corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Scopes: names}
	}
	both := priority(corev1.ScopeSelectorOpIn, "high")
	both.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
	for name, tc := range map[string]struct {
		spec      corev1.ResourceQuotaSpec
		counts    bool
		uncounted bool
		want      string // the pods that match, below
	}{
		"no scope":        {scopes(), true, false, "plain terminating best-effort high low high-terminating"},
		"terminating":     {scopes(corev1.ResourceQuotaScopeTerminating), true, false, "terminating high-terminating"},
		"not terminating": {scopes(corev1.ResourceQuotaScopeNotTerminating), true, false, "plain best-effort high low"},
		"best effort":     {scopes(corev1.ResourceQuotaScopeBestEffort), true, false, "best-effort"},
		"not best effort": {scopes(corev1.ResourceQuotaScopeNotBestEffort), true,
			false, "plain terminating high low high-terminating"},
		"a priority class":    {scopes(corev1.ResourceQuotaScopePriorityClass), true, false, "high low high-terminating"},
		"of one priority":     {priority(corev1.ScopeSelectorOpIn, "high"), true, false, "high high-terminating"},
		"of another priority": {priority(corev1.ScopeSelectorOpNotIn, "high"), true, false, "plain terminating best-effort low"},
		"without a priority":  {priority(corev1.ScopeSelectorOpDoesNotExist), true, false, "plain terminating best-effort"},
		"two at once":         {both, true, false, "high-terminating"},
		"volumes": {scopes(corev1.ResourceQuotaScopeVolumeAttributesClass), false, false,
			"plain terminating best-effort high low high-terminating"},
		"one that is not known":        {scopes("New"), true, true, "high low high-terminating"},
		"one that is not known before": {scopes("New", corev1.ResourceQuotaScopePriorityClass), true, true, "high low high-terminating"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s quota.Scope
			counts, uncounted := s.Narrow(tc.spec)
			var matched []string
			for _, pod := range []struct {
				name   string
				traits quota.Traits
			}{
				{"plain", quota.Traits{}}, {"terminating", quota.Traits{Terminating: true}}, {"best-effort", quota.Traits{BestEffort: true}},
				{"high", quota.Traits{PriorityClass: "high"}}, {"low", quota.Traits{PriorityClass: "low"}},
				{"high-terminating", quota.Traits{PriorityClass: "high", Terminating: true}},
			} {
				if s.Pods.Match(pod.traits) {
					matched = append(matched, pod.name)
				}
			}
			if got := strings.Join(matched, " "); counts != tc.counts || (uncounted != "") != tc.uncounted || got != tc.want {
				t.Errorf("counts %v, uncounted %q, matches %q; want %+v", counts, uncounted, got, tc)
			}
		})
	}
}
