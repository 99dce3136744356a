package doctor

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
			mutating = append(mutating,
				entry{object("mutatingwebhookconfiguration", "", m.Name), w.Name, w.ClientConfig.CABundle, failurePolicy(w.FailurePolicy)})
		}
	}
	for _, v := range ours(f.Validating) {
		for _, w := range v.Webhooks {
			validating = append(validating,
				entry{object("validatingwebhookconfiguration", "", v.Name), w.Name, w.ClientConfig.CABundle, failurePolicy(w.FailurePolicy)})
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
				WithRemedy("kubectl -n %s logs deployment/gpuslice-webhook; a replica writes it within seconds, or cert-manager's cainjector does",
					f.System))
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
