package doctor

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/policies/api"
)

// checkNamespaceLabels looks for labels of namespaces that selectors do not match: their authors are unknown.
func checkNamespaceLabels(f *Facts) []Finding {
	accepted := map[string][]string{api.LabelEnforce: {api.EnforceStrict},
		api.LabelBypass: {"true"}, api.LabelFail: {api.FailOpen, api.FailOpenForClaims}}
	var all []Finding
	for _, ns := range f.Namespaces {
		for _, name := range slices.Sorted(maps.Keys(ns.Labels)) {
			for _, label := range slices.Sorted(maps.Keys(accepted)) {
				value := ns.Labels[name]
				if !strings.EqualFold(name, label) || name == label && (slices.Contains(accepted[label], value) || value == "false") {
					continue
				}
				all = append(all, newFinding(Warning, "a label of a namespace has no effect").With(object("namespace", "", ns.Name), name, value).
					WithRemedy(`write %s: "%s", or remove it: kubectl label namespace %s %s-`,
						label, strings.Join(accepted[label], `" or "`), ns.Name, name))
			}
		}
	}
	return all
}
