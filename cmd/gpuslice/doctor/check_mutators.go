package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

// checkMutators lists who else changes pods. The API server calls configurations in the order of their names, and calls
// gpuslice again when somebody after it changed the pod.
func checkMutators(f *Facts) []Finding {
	others := newFinding(Note,
		"other mutating webhooks change pods; those whose name comes after gpuslice's do so after it, and gpuslice is called once more then")
	last := newFinding(Note,
		"other mutating webhooks are called again after gpuslice, and may change what a slice needs, which is denied then: "+
			"variables that programs are loaded by, mounts outside of /var/run/secrets, images or security contexts of the containers gpuslice-*")
	last = last.WithRemedy(
		"exclude containers gpuslice-* there if they write such, or set reinvocationPolicy: Never: deploy/recipes/other-webhooks.md")
	shares := newFinding(Warning, "another system that shares GPUs changes pods: what it adds to a slice, such as its scheduler or resources of its own, "+
		"keeps the pod waiting, or counts it twice")
	var optOuts []string
	for _, m := range f.Mutating {
		if len(ours([]*admissionv1.MutatingWebhookConfiguration{m})) > 0 {
			continue
		}
		for i := range m.Webhooks {
			w := &m.Webhooks[i]
			if !createsPods(w.Rules) {
				continue
			}
			where, value := object("mutatingwebhookconfiguration", "", m.Name), order(m.Name)+", failurePolicy "+failurePolicy(w.FailurePolicy)
			if slices.ContainsFunc(sharers(), func(name string) bool { return strings.Contains(strings.ToLower(m.Name+" "+w.Name), name) }) {
				if reached := f.reached(w); reached != "" {
					shares = shares.With(where, "webhooks["+w.Name+"]", value+", "+reached)
					optOuts = append(optOuts, optOut(w))
				}
				continue
			}
			if again := w.ReinvocationPolicy; m.Name > "gpuslice" && again != nil && *again == admissionv1.IfNeededReinvocationPolicy {
				last = last.With(where, "webhooks["+w.Name+"]", value+", reinvocationPolicy IfNeeded")
				continue
			}
			others = others.With(where, "webhooks["+w.Name+"]", value)
		}
	}
	shares = shares.WithRemedy("let one of them govern a namespace: exclude it there by %s, or give the namespace no policy of gpuslice",
		strings.Join(slices.Compact(slices.Sorted(slices.Values(optOuts))), "; "))
	policies := newFinding(Note,
		"mutating admission policies change pods: they run before all webhooks, and once more after gpuslice changed the pod where their reinvocationPolicy "+
			"is IfNeeded; what a slice needs is checked after them, and denied where they changed it")
	for _, p := range f.MutatingPolicies {
		if p.Spec.MatchConstraints == nil {
			continue
		}
		var rules []admissionv1.RuleWithOperations
		for _, r := range p.Spec.MatchConstraints.ResourceRules {
			rules = append(rules, r.RuleWithOperations)
		}
		if createsPods(rules) {
			policies = policies.With(object("mutatingadmissionpolicy", "", p.Name), "spec.reinvocationPolicy", string(p.Spec.ReinvocationPolicy))
		}
	}
	return withEvidence(shares, last, others, policies)
}

// reached describes the namespaces whose pods a webhook changes beside gpuslice; "": there are none.
func (f *Facts) reached(w *admissionv1.MutatingWebhook) string {
	selector, err := metav1.LabelSelectorAsSelector(w.NamespaceSelector)
	governed := f.Governed()
	switch {
	case err != nil:
		return "its namespaceSelector cannot be read"
	case len(governed) == 0:
		return "no namespace is governed yet"
	}
	var names []string
	for _, g := range governed {
		i := slices.IndexFunc(f.Namespaces, func(ns *corev1.Namespace) bool { return ns.Name == g.Name })
		if w.NamespaceSelector == nil || selector.Matches(labels.Set(f.Namespaces[i].Labels)) {
			names = append(names, g.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "in " + cli.First(shownNames, names)
}

// optOut is how a webhook's own selectors let namespaces or pods leave it.
func optOut(w *admissionv1.MutatingWebhook) string {
	for at, selector := range []*metav1.LabelSelector{w.NamespaceSelector, w.ObjectSelector} {
		if selector == nil {
			continue
		}
		for _, e := range selector.MatchExpressions {
			if e.Operator != metav1.LabelSelectorOpNotIn || len(e.Values) == 0 || e.Key == corev1.LabelMetadataName {
				continue
			}
			if at == 0 {
				return fmt.Sprintf("kubectl label namespace NAMESPACE %s=%s", e.Key, e.Values[0])
			}
			return fmt.Sprintf("the label %s: %s of its pods", e.Key, e.Values[0])
		}
	}
	return "its namespaceSelector"
}

// sharers are parts of the names of other systems that share GPUs.
func sharers() []string {
	return []string{"hami", "vgpu", "runai", "run.ai", "tensor-fusion", "kai-", "gpushare", "koordinator"}
}

func order(name string) string {
	if name < "gpuslice" {
		return "before gpuslice"
	}
	return "after gpuslice"
}

func failurePolicy(p *admissionv1.FailurePolicyType) string {
	if p == nil {
		return string(admissionv1.Fail)
	}
	return string(*p)
}

// createsPods reports whether rules match the creation of pods.
func createsPods(rules []admissionv1.RuleWithOperations) bool {
	return slices.ContainsFunc(rules, func(r admissionv1.RuleWithOperations) bool {
		return has(r.APIGroups, "", "*") && has(r.Resources, "pods", "*", "*/*") &&
			slices.ContainsFunc(r.Operations, func(o admissionv1.OperationType) bool {
				return o == admissionv1.Create || o == admissionv1.OperationAll
			})
	})
}

func has(list []string, wanted ...string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(wanted, s) })
}
