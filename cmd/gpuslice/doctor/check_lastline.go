package doctor

import "github.com/gpuslice/gpuslice/cmd/gpuslice/finding"

// checkLastLine looks for the policies that the API server itself holds, also while the webhook is down.
func checkLastLine(f *Facts) []finding.Finding {
	if f.unread(whatLastLine) {
		return nil
	}
	if len(f.LastLine) == 0 {
		return []finding.Finding{finding.New(finding.Note, "there is no ValidatingAdmissionPolicy of gpuslice: the namespace label gpuslice.dev/enforce=strict holds nothing while the webhook is down").
			With("validatingadmissionpolicies", "", "none is labelled app.kubernetes.io/name: gpuslice").MendBy("kubectl apply -f deploy/")}
	}
	ok := finding.New(finding.OK, "the API server holds namespaces labelled gpuslice.dev/enforce=strict by itself")
	for _, p := range f.LastLine {
		ok = ok.With(object("validatingadmissionpolicy", "", p.Name), "", "")
	}
	return []finding.Finding{ok}
}
