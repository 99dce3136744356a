package doctor

import (
	"strings"
)

// checkPolicies looks for policies that cannot be used, and whether any namespace is governed.
func checkPolicies(f *Facts) []Finding {
	if f.unread(whatPolicies) {
		return nil
	}
	state, governed := f.snapshot().StateReport(), f.Governed()
	var all []Finding
	for _, p := range state.Policies {
		if p.Error == "" {
			continue
		}
		namespace, name, _ := strings.Cut(p.Name, "/")
		broken := newFinding(Problem, "policy %s cannot be used, and no earlier version is known: GPU pods of its namespaces are denied", p.Name)
		if p.LastGood {
			broken = newFinding(Warning, "policy %s cannot be used; its last good version governs meanwhile", p.Name)
		}
		all = append(all, broken.With(object("configmap", namespace, name), "data[policy.yaml]", p.Error).
			WithRemedy("gpuslice policy lint; kubectl -n %s edit configmap %s", namespace, name))
	}
	if len(governed) == 0 {
		return append(all, newFinding(Note, "no namespace is governed: nothing is touched").
			With("configmaps", object("namespace", "", f.System), decimal(len(state.Policies))+" policies").
			WithRemedy("write a policy: ConfigMaps in namespace %s with the label gpuslice.dev/policy: \"true\"", f.System))
	}
	ok := newFinding(OK, "%d namespaces are governed", len(governed))
	for _, g := range governed {
		ok = ok.With(object("namespace", "", g.Name), "policy",
			g.Input.Policy.Name+", "+string(g.Input.Policy.Mode)+", "+string(g.Input.Policy.EnforcementMode))
	}
	return append(all, ok)
}
