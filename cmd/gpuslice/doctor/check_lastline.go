package doctor

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// strictPolicy is the one for namespaces labelled strict.
const strictPolicy = "gpuslice-strict"

// lastLine are the policies that the API server itself enforces, also while the webhook is down, each with a binding,
// and the consequence of its absence.
var lastLine = []struct{ policy, missing string }{
	{strictPolicy, "the namespace label gpuslice.dev/enforce=strict enforces nothing while the webhook is down"},
	{"gpuslice-guard", "tenants may run programs in the guard's container, which sees every GPU of its node"},
	{"gpuslice-claims", "tenants may write ResourceClaimTemplates that request more than gpuslice's names allow"},
	{"gpuslice-own-rights", "nothing limits what the webhook's ServiceAccount changes on pods and namespaces"},
	{"gpuslice-own-conditions", "nothing limits what the webhook's ServiceAccount changes in the status of nodes"},
	{"gpuslice-own-ledgers", "nothing limits which ConfigMaps the webhook's ServiceAccount writes and deletes"},
	{"gpuslice-own-templates", "nothing limits which ResourceClaimTemplates the webhook's ServiceAccount creates and deletes"},
	{"gpuslice-own-names", "nothing limits which Leases and Secrets the webhook's ServiceAccount creates in its namespace"},
	{"gpuslice-own-events", "nothing limits which Events the webhook's ServiceAccount writes"},
}

// checkLastLine looks for the policies that the API server itself enforces, and for their bindings, by name.
func checkLastLine(f *Facts) []Finding {
	if f.unread(whatLastLine) {
		return nil
	}
	var found []Finding
	ok := newFinding(OK,
		"the API server enforces namespaces labelled gpuslice.dev/enforce=strict, and keeps tenants out of the guard, by itself")
	for _, l := range lastLine {
		where := object("validatingadmissionpolicy", "", l.policy)
		lacks := f.whatLacks(l.policy, l.missing)
		relied := len(lacks.Evidence)
		if !slices.ContainsFunc(f.LastLine, func(p *admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == l.policy }) {
			lacks = lacks.With(where, "", "missing")
		}
		if !slices.ContainsFunc(f.Bindings, func(b *admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName == l.policy }) {
			lacks = lacks.With(object("validatingadmissionpolicybinding", "", l.policy), "", "missing")
		}
		if len(lacks.Evidence) == relied {
			ok = ok.With(where, "", "")
			continue
		}
		found = append(found, lacks.WithRemedy("%s", f.reinstall()))
	}
	if len(found) > 0 {
		return found
	}
	return []Finding{ok}
}

// whatLacks is the consequence of a policy's absence: a problem if a namespace relies on it.
func (f *Facts) whatLacks(policy, missing string) Finding {
	if ns := f.strictNamespace(); ns != nil && policy == strictPolicy {
		return newFinding(Problem, "%s", missing).
			With(object("namespace", "", ns.Name), "metadata.labels["+api.LabelEnforce+"]", api.EnforceStrict)
	}
	return newFinding(Warning, "%s", missing)
}

// strictNamespace is the first namespace that is labelled strict; nil: none is.
func (f *Facts) strictNamespace() *corev1.Namespace {
	i := slices.IndexFunc(f.Namespaces, func(ns *corev1.Namespace) bool { return ns.Labels[api.LabelEnforce] == api.EnforceStrict })
	if i < 0 {
		return nil
	}
	return f.Namespaces[i]
}
