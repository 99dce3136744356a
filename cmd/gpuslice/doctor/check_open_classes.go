package doctor

import (
	"slices"
	"strconv"
	"strings"
)

// firstClaims is the first minor version of Kubernetes 1 that serves claims as gpuslice reads them.
const firstClaims = 34

// checkOpenClasses looks for policies with a quota or slices by claim under which pods may claim GPUs otherwise, and for clusters
// whose claims gpuslice does not read.
func checkOpenClasses(f *Facts) []Finding {
	unread := newFinding(Warning, "gpuslice counts no claims of GPUs: it reads them by resource.k8s.io/v1, which Kubernetes serves from 1.%d on", firstClaims).
		WithRemedy("upgrade the control plane, or have the API server deny claims of GPUs: chart value claims.deviceClasses")
	if v := f.Version; v != nil && slices.Contains(f.Groups, "resource.k8s.io") {
		if minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+")); err == nil && v.Major == "1" && minor < firstClaims {
			return []Finding{unread.With("version", "gitVersion", v.GitVersion)}
		}
	}
	found := newFinding(Warning, "pods may claim GPUs beside a quota or slices by claim: a claim that is exchanged after its pod was admitted counts late").
		WithRemedy("leave out claims: count in the policy, and nobody claims GPUs there but by slices")
	for _, g := range f.Governed() {
		if open := g.Input.OpenClasses(); open != "" {
			found = found.With(object("namespace", "", g.Name), "policy "+g.Input.Policy.Name+", open classes", open)
		}
	}
	return withEvidence(found)
}
