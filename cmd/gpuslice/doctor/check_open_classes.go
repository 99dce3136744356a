package doctor

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// checkOpenClasses looks for policies with a quota or slices by claim under which pods may claim GPUs otherwise, and for clusters
// whose claims gpuslice does not read.
func checkOpenClasses(f *Facts) []Finding {
	if slices.Contains(f.Groups, "resource.k8s.io") && !slices.Contains(f.Groups, resourcev1.SchemeGroupVersion.String()) {
		return []Finding{
			newFinding(Warning, "gpuslice counts no claims of GPUs: it reads them by resource.k8s.io/v1, which the API server does not serve").
				With("apigroup/resource.k8s.io", "", "").
				WithRemedy("serve resource.k8s.io/v1 (Kubernetes 1.34 does by default), or have the API server deny claims of GPUs: chart value claims.deviceClasses")}
	}
	found := newFinding(Warning,
		"pods may claim GPUs beside a quota or slices by claim: a claim that is exchanged after its pod was admitted counts late").
		WithRemedy("leave out claims: count in the policy, and nobody claims GPUs there but by slices")
	for _, g := range f.Governed() {
		if open := g.Input.GPUClaims().Open(); open != "" && g.Input.Namespace.Labels[api.LabelFail] != api.FailOpenForClaims {
			found = found.With(object("namespace", "", g.Name), "policy "+g.Input.Policy.Name+", open classes", open)
		}
	}
	return withEvidence(found)
}
