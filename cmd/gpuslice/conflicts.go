package main

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gpuslice/gpuslice/policies"
)

// unclaimed is the name of a namespace that no policy names; no namespace may have it.
const unclaimed = "*"

// conflicts asks the core, as a cluster would, who governs the namespaces at which policies could meet: one that nobody
// names, each that somebody names, and those among beside. What two selectors may both match, some day, is a warning.
func conflicts(all []*policies.Policy, beside []object) (problems, warnings []string) {
	book := policies.NewBook(all)
	for _, ns := range namespacesInQuestion(all, beside) {
		if _, err := book.For(ns); err != nil && !slices.Contains(problems, err.Error()) {
			problems = append(problems, err.Error())
		}
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			shared, ok := matchedByBoth(a, b)
			if !ok {
				continue
			}
			if _, err := policies.NewBook([]*policies.Policy{a, b}).For(policies.Namespace{Name: unclaimed, Labels: shared}); err == nil {
				continue
			}
			warnings = append(warnings, fmt.Sprintf("%s and %s would both claim a namespace with the labels %s; its GPU pods would be refused",
				a.Name, b.Name, labels.FormatLabels(shared)))
		}
	}
	return problems, warnings
}

func namespacesInQuestion(all []*policies.Policy, beside []object) []policies.Namespace {
	known := map[string]map[string]string{unclaimed: nil}
	for _, p := range all {
		if p.Namespaces == nil {
			continue
		}
		for _, name := range p.Namespaces.Names {
			known[name] = nil
		}
	}
	for _, o := range beside {
		if o.kind == "Namespace" && o.apiVersion == "v1" {
			known[o.name] = o.labels
		}
	}
	var out []policies.Namespace
	for _, name := range slices.Sorted(maps.Keys(known)) {
		out = append(out, policies.Namespace{Name: name, Labels: known[name]})
	}
	return out
}

// matchedByBoth returns labels that the selectors of both policies match, where the obvious ones do.
func matchedByBoth(a, b *policies.Policy) (map[string]string, bool) {
	shared := map[string]string{}
	for _, p := range []*policies.Policy{a, b} {
		if p.Namespaces == nil || p.Namespaces.Selector == nil {
			return nil, false
		}
		maps.Copy(shared, obviousLabels(p.Namespaces.Selector))
	}
	for _, p := range []*policies.Policy{a, b} {
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
