package lint

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
)

// conflicts returns the core's denials of policies together, in the namespaces that are known. Two selectors that may
// both match some day, though no such namespace is known, are a warning.
func conflicts(all []*config.Policy, namespaces []api.Namespace) (problems, warnings []string) {
	for _, err := range config.NewBook(all).Conflicts(namespaces) {
		problems = append(problems, err.Error())
	}
	for _, err := range config.NewBook(all).BudgetConflicts() {
		problems = append(problems, err.Error())
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if shared, ok := matchedByBoth(a, b); ok {
				warnings = append(warnings, fmt.Sprintf("%s and %s would both claim a namespace with the labels %s, and its GPU pods would be denied",
					a.Name, b.Name, labels.FormatLabels(shared)))
			}
		}
	}
	return problems, warnings
}

// oncePerName leaves out documents of a name that an earlier one has, and returns a problem for each: whichever is applied
// last replaces the other.
func oncePerName(found []manifest.Policy) (once []manifest.Policy, problems []string) {
	type key struct {
		place config.Place
		name  string
	}
	first := map[key]string{}
	for _, p := range found {
		name := key{p.Place, p.Name}
		if at, repeated := first[name]; repeated {
			problems = append(problems,
				fmt.Sprintf("%s and %s have one name: the one that is applied last replaces the other; rename one of them", at, p.At))
			continue
		}
		first[name] = p.At
		once = append(once, p)
	}
	return once, problems
}

// matchedByBoth returns labels that the selectors of both policies match, where the obvious ones do.
func matchedByBoth(a, b *config.Policy) (map[string]string, bool) {
	shared := map[string]string{}
	for _, p := range []*config.Policy{a, b} {
		if p.Namespaces == nil || p.Namespaces.Selector == nil {
			return nil, false
		}
		maps.Copy(shared, obviousLabels(p.Namespaces.Selector))
	}
	for _, p := range []*config.Policy{a, b} {
		selector, err := metav1.LabelSelectorAsSelector(p.Namespaces.Selector)
		if err != nil || !selector.Matches(labels.Set(shared)) {
			return nil, false
		}
	}
	return shared, true
}

// obviousLabels are the fewest labels that a selector matches.
func obviousLabels(s *metav1.LabelSelector) map[string]string {
	least := map[string]string{}
	maps.Copy(least, s.MatchLabels)
	for _, e := range s.MatchExpressions {
		_, set := least[e.Key]
		switch {
		case set:
		case e.Operator == metav1.LabelSelectorOpIn && len(e.Values) > 0:
			least[e.Key] = e.Values[0]
		case e.Operator == metav1.LabelSelectorOpExists:
			least[e.Key] = "true"
		}
	}
	return least
}
