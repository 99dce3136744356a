package doctor

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/nvidia"
	"github.com/gpuslice/gpuslice/policies/api"
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
		all = append(all, broken.With(object("configmap", namespace, name), "data[policy.yaml]", p.Error).WithRemedy("gpuslice policy lint; kubectl -n %s edit configmap %s", namespace, name))
	}
	if len(governed) == 0 {
		return append(all, newFinding(Note, "no namespace is governed: nothing is touched").With("configmaps", object("namespace", "", f.System), decimal(len(state.Policies))+" policies").
			WithRemedy("write a policy: ConfigMaps in namespace %s with the label gpuslice.dev/policy: \"true\"", f.System))
	}
	ok := newFinding(OK, "%d namespaces are governed", len(governed))
	for _, g := range governed {
		ok = ok.With(object("namespace", "", g.Name), "policy", g.Input.Policy.Name+", "+string(g.Input.Policy.Mode)+", "+string(g.Input.Policy.EnforcementMode))
	}
	return append(all, ok)
}

// checkGovernedSoftware looks for NVIDIA's own DaemonSets in governed namespaces: their pods use devices that they do not
// request. Only the device plugin's stay visible.
func checkGovernedSoftware(f *Facts) []Finding {
	hidden := newFinding(Problem, "NVIDIA's software runs in a governed namespace: gpuslice hides the devices that it serves from its pods")
	visible := newFinding(Warning, "NVIDIA's device plugin runs in a governed namespace: gpuslice warns at each of its pods")
	var namespaces []string
	for _, g := range f.Governed() {
		for _, d := range f.DaemonSets {
			switch p := nvidia.PartOf(d); {
			case d.Namespace != g.Name || p == nvidia.OtherSoftware:
				continue
			case p == nvidia.DevicePlugin:
				visible = visible.With(daemonSet(d), "policy", g.Input.Policy.Name)
			default:
				hidden = hidden.With(daemonSet(d), "policy", g.Input.Policy.Name)
			}
			if !slices.Contains(namespaces, g.Name) {
				namespaces = append(namespaces, g.Name)
			}
		}
	}
	const remedy = "leave these namespaces out, by the chart's value excludedNamespaces or the namespaceSelector of the webhook configurations: %q"
	return withEvidence(hidden.WithRemedy(remedy, namespaces), visible.WithRemedy(remedy, namespaces))
}

// checkNamespaceLabels looks for labels of namespaces that selectors do not match: their authors are unknown.
func checkNamespaceLabels(f *Facts) []Finding {
	accepted := map[string][]string{api.LabelEnforce: {api.EnforceStrict}, api.LabelBypass: {"true"}, api.LabelFail: {api.FailOpen, api.FailOpenForClaims}}
	var all []Finding
	for _, ns := range f.Namespaces {
		for _, name := range slices.Sorted(maps.Keys(ns.Labels)) {
			for _, label := range slices.Sorted(maps.Keys(accepted)) {
				value := ns.Labels[name]
				if !strings.EqualFold(name, label) || name == label && (slices.Contains(accepted[label], value) || value == "false") {
					continue
				}
				all = append(all, newFinding(Warning, "a label of a namespace has no effect").With(object("namespace", "", ns.Name), name, value).
					WithRemedy(`write %s: "%s", or remove it: kubectl label namespace %s %s-`, label, strings.Join(accepted[label], `" or "`), ns.Name, name))
			}
		}
	}
	return all
}
