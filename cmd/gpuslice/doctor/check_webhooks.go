package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// entry is one webhook of a configuration of ours, whichever kind.
type entry struct {
	configuration, name string
	bundle              []byte
	failurePolicy       string
}

// entries are the webhooks of our configurations.
func entries(f *Facts) (mutating, validating []entry) {
	for _, m := range ours(f.Mutating) {
		for _, w := range m.Webhooks {
			mutating = append(mutating, entry{object("mutatingwebhookconfiguration", "", m.Name), w.Name, w.ClientConfig.CABundle, failurePolicy(w.FailurePolicy)})
		}
	}
	for _, v := range ours(f.Validating) {
		for _, w := range v.Webhooks {
			validating = append(validating, entry{object("validatingwebhookconfiguration", "", v.Name), w.Name, w.ClientConfig.CABundle, failurePolicy(w.FailurePolicy)})
		}
	}
	return mutating, validating
}

// checkWebhooks looks for the configurations by which the API server calls the webhook at all.
func checkWebhooks(f *Facts) []Finding {
	if f.unread(whatWebhooks) {
		return nil
	}
	mutating, validating := entries(f)
	var all []Finding
	if len(mutating) == 0 {
		all = append(all, newFinding(Problem, "there is no mutating webhook configuration of gpuslice: no pod gets a slice").
			With("mutatingwebhookconfigurations", "", "none is labelled app.kubernetes.io/name: gpuslice").WithRemedy("%s", f.reinstall()))
	}
	if len(validating) == 0 {
		all = append(all, newFinding(Problem, "there is no validating webhook configuration of gpuslice: quotas are not enforced, and a pod that the mutating webhook missed is admitted as it is").
			With("validatingwebhookconfigurations", "", "none is labelled app.kubernetes.io/name: gpuslice").WithRemedy("%s", f.reinstall()))
	}
	for _, e := range append(mutating, validating...) {
		if len(e.bundle) == 0 {
			all = append(all, newFinding(Problem, "the API server cannot trust webhook %s: nothing has written its caBundle", e.name).
				With(e.configuration, "webhooks["+e.name+"].clientConfig.caBundle", "empty").
				WithRemedy("kubectl -n %s logs deployment/gpuslice-webhook; a replica writes it within seconds, or cert-manager's cainjector does", f.System))
		}
	}
	if len(all) == 0 {
		ok := newFinding(OK, "the API server calls gpuslice")
		for _, e := range append(mutating, validating...) {
			ok = ok.With(e.configuration, "webhooks["+e.name+"].failurePolicy", e.failurePolicy)
		}
		all = append(all, ok)
	}
	return all
}

// soon is how long before its end an authority that nobody renewed is reported. Ours lives for years and is renewed
// long before; cert-manager renews at two thirds.
const soon = 14 * 24 * time.Hour

// checkAuthority looks at the certificates by which the API server trusts the webhook.
func checkAuthority(f *Facts) []Finding {
	mutating, validating := entries(f)
	var all []Finding
	seen := map[string]bool{}
	for _, e := range append(mutating, validating...) {
		if len(e.bundle) == 0 || seen[e.configuration+string(e.bundle)] {
			continue
		}
		seen[e.configuration+string(e.bundle)] = true
		all = append(all, authority(e, f.Now))
	}
	return all
}

// authority judges a bundle by the certificate in it that lives longest: while one is replaced, both are there.
func authority(e entry, now time.Time) Finding {
	var last time.Time
	for rest := e.bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.NotAfter.After(last) {
			last = c.NotAfter
		}
	}
	field, until := "webhooks["+e.name+"].clientConfig.caBundle", last.UTC().Format(time.DateOnly)
	switch {
	case last.IsZero():
		return newFinding(Problem, "the authority of the webhook is no certificate").With(e.configuration, field, "no PEM certificate in it")
	case now.After(last):
		return newFinding(Problem, "the authority of the webhook has expired: the API server trusts no replica").With(e.configuration, field, "until "+until).
			WithRemedy("kubectl -n gpuslice-system delete secret gpuslice-authority && kubectl -n gpuslice-system rollout restart deployment gpuslice-webhook")
	case now.Add(soon).After(last):
		return newFinding(Warning, "the authority of the webhook expires within %d days, and nothing has renewed it", int(soon.Hours()/24)).With(e.configuration, field, "until "+until).
			WithRemedy("kubectl -n gpuslice-system logs deployment/gpuslice-webhook; with cert-manager: kubectl -n gpuslice-system describe certificate")
	}
	return newFinding(OK, "the webhook's authority is good until %s", until).With(e.configuration, field, "until "+until)
}

// checkReplicas looks for ready replicas.
func checkReplicas(f *Facts) []Finding {
	if f.unread(whatWebhook) {
		return nil
	}
	d := f.Deployment
	if d == nil {
		return []Finding{newFinding(Problem, "there is no webhook in namespace %s: pods stay as they are, or are denied, by each entry's failurePolicy", f.System).
			With("deployments", "", "none is labelled app.kubernetes.io/component: webhook").WithRemedy("%s", f.reinstall())}
	}
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	where, ready := object("deployment", d.Namespace, d.Name), d.Status.ReadyReplicas
	found := newFinding(OK, "%d of %d replicas are ready", ready, wanted)
	switch {
	case ready == 0:
		found = newFinding(Problem, "no replica of the webhook is ready")
	case ready < wanted:
		found = newFinding(Warning, "%d of %d replicas are ready", ready, wanted)
	case wanted < 2:
		found = newFinding(Warning, "one replica alone: while its node is drained nothing answers").WithRemedy("kubectl -n %s scale deployment %s --replicas=3", d.Namespace, d.Name)
	}
	found = found.With(where, "status.readyReplicas", decimal(ready))
	if found.Level == OK || found.Remedy != "" {
		return []Finding{found}
	}
	for _, p := range f.Pods {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
				found = found.With(object("pod", p.Namespace, p.Name), "status.conditions[Ready]", c.Reason+" "+c.Message)
			}
		}
	}
	return []Finding{found.WithRemedy("kubectl -n %s describe deployment %s; kubectl -n %s logs deployment/%s", d.Namespace, d.Name, d.Namespace, d.Name)}
}

// checkFlows looks for the share of the API server's attention that keeps the webhook's own writes from waiting behind
// the very pods that wait for them.
func checkFlows(f *Facts) []Finding {
	if f.unread(whatFlows) {
		return nil
	}
	if len(f.Flows) == 0 {
		return []Finding{newFinding(Warning, "there is no FlowSchema of gpuslice: under load its own writes wait behind the pods that wait for them").
			With("flowschemas", "", "none is labelled app.kubernetes.io/name: gpuslice").WithRemedy("%s", f.reinstall())}
	}
	ok := newFinding(OK, "the webhook's requests have a priority level of their own")
	for _, s := range f.Flows {
		ok = ok.With(object("flowschema", "", s.Name), "spec.priorityLevelConfiguration", s.Spec.PriorityLevelConfiguration.Name)
	}
	return []Finding{ok}
}

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
	{"gpuslice-own-reports", "nothing limits which Reports the webhook's ServiceAccount creates"},
	{"gpuslice-own-names", "nothing limits which Leases and Secrets the webhook's ServiceAccount creates in its namespace"},
	{"gpuslice-own-quotas", "nothing limits which ResourceQuotas the webhook's ServiceAccount creates, in any namespace"},
	{"gpuslice-own-events", "nothing limits which Events the webhook's ServiceAccount writes"},
}

// checkLastLine looks for the policies that the API server itself enforces, and for their bindings, by name.
func checkLastLine(f *Facts) []Finding {
	if f.unread(whatLastLine) {
		return nil
	}
	var found []Finding
	ok := newFinding(OK, "the API server enforces namespaces labelled gpuslice.dev/enforce=strict, and keeps tenants out of the guard, by itself")
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
		return newFinding(Problem, "%s", missing).With(object("namespace", "", ns.Name), "metadata.labels["+api.LabelEnforce+"]", api.EnforceStrict)
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
