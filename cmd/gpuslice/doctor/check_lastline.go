package doctor

// checkLastLine looks for the policies that the API server itself holds, also while the webhook is down.
func checkLastLine(f *Facts) []Finding {
	if f.unread(whatLastLine) {
		return nil
	}
	if len(f.LastLine) == 0 {
		return []Finding{newFinding(Note, "there is no ValidatingAdmissionPolicy of gpuslice: the namespace label gpuslice.dev/enforce=strict enforces nothing while the webhook is down").
			With("validatingadmissionpolicies", "", "none is labelled app.kubernetes.io/name: gpuslice").WithRemedy("kubectl apply -f deploy/")}
	}
	ok := newFinding(OK, "the API server enforces namespaces labelled gpuslice.dev/enforce=strict by itself")
	for _, p := range f.LastLine {
		ok = ok.With(object("validatingadmissionpolicy", "", p.Name), "", "")
	}
	return []Finding{ok}
}
