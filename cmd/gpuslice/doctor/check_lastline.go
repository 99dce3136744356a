package doctor

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// lastLine are the policies that the API server itself enforces, also while the webhook is down, and what happens
// without each.
var lastLine = []struct{ policy, missing string }{
	{"gpuslice-strict", "the namespace label gpuslice.dev/enforce=strict enforces nothing while the webhook is down"},
	{"gpuslice-guard", "tenants may run programs in the guard's container, which sees every GPU of its node"},
	{"gpuslice-own-rights", "nothing limits what the webhook's ServiceAccount changes on pods and namespaces"},
	{"gpuslice-own-ledgers", "nothing limits which ConfigMaps the webhook's ServiceAccount deletes"},
}

// checkLastLine looks for the policies that the API server itself enforces.
func checkLastLine(f *Facts) []Finding {
	if f.unread(whatLastLine) {
		return nil
	}
	var found []Finding
	ok := newFinding(OK, "the API server enforces namespaces labelled gpuslice.dev/enforce=strict, and keeps tenants out of the guard, by itself")
	for _, l := range lastLine {
		where := object("validatingadmissionpolicy", "", l.policy)
		if slices.ContainsFunc(f.LastLine, func(p *admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == l.policy }) {
			ok = ok.With(where, "", "")
			continue
		}
		found = append(found, newFinding(Warning, "ValidatingAdmissionPolicy %s is missing: %s", l.policy, l.missing).
			With(where, "", "missing").WithRemedy("install gpuslice's manifests again: helm upgrade, or kubectl apply --server-side -k with your overlay"))
	}
	if len(found) > 0 {
		return found
	}
	return []Finding{ok}
}
