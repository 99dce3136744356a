package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// Book is the set of policies of a cluster, ready to be requested a namespace. The zero Book governs nothing. A Book
// is read-only and may be shared.
type Book struct {
	byName     map[string][]*Policy
	bySelector []selecting
	defaults   []*Policy
	budgets    map[string][]*Policy // as they were written, by the shared budget that they name
}

// selecting is a policy that governs namespaces by their labels.
type selecting struct {
	policy   *Policy
	selector labels.Selector
	err      error // why the selector cannot be read: it may have meant any namespace
}

// NewBook collects policies. Problems between documents (two defaults, one name claimed twice) are reported by For,
// for the namespaces that they concern, and by Conflicts. Of a budget that several share with different limits the
// strictest hold.
func NewBook(documents []*Policy) Book {
	sorted := slices.SortedStableFunc(slices.Values(documents), func(p, q *Policy) int { return cmp.Compare(p.Name, q.Name) })
	b := Book{byName: map[string][]*Policy{}, budgets: sharing(sorted)}
	for _, p := range strictestBudgets(sorted) {
		if p.Namespaces == nil {
			b.defaults = append(b.defaults, p)
			continue
		}
		for _, name := range p.Namespaces.Names {
			if !slices.Contains(b.byName[name], p) {
				b.byName[name] = append(b.byName[name], p)
			}
		}
		if p.Namespaces.Selector != nil {
			selector, err := metav1.LabelSelectorAsSelector(p.Namespaces.Selector)
			b.bySelector = append(b.bySelector, selecting{p, selector, err})
		}
	}
	return b
}

// For returns the policy of a namespace: by name, else by selector, else the default; nil where none governs it. Two
// that claim the namespace with equal right are an error that names both.
func (b Book) For(ns api.Namespace) (*Policy, error) {
	if named := b.byName[ns.Name]; len(named) > 0 {
		return only(named, "namespace "+message.Quote(ns.Name), "name it in one of them only")
	}
	var matching []*Policy
	for _, s := range b.bySelector {
		if s.err != nil {
			return nil, fmt.Errorf("read the selector of policy %s: %w", s.policy.Name, s.err)
		}
		if s.selector.Matches(labels.Set(ns.Labels)) {
			matching = append(matching, s.policy)
		}
	}
	if len(matching) > 0 {
		return only(matching, "namespace "+message.Quote(ns.Name)+" by its labels",
			"name it in one of them, or make their selectors exclude each other")
	}
	if len(b.defaults) == 0 {
		return nil, nil
	}
	return only(b.defaults, "all namespaces that no other governs", "give all but one of them namespaces")
}

// Default returns the cluster's default policy, or nil: pools are declared there. If there are several, which For
// denies, it is the first by name: a second default must not change the known nodes.
func (b Book) Default() *Policy {
	if len(b.defaults) == 0 {
		return nil
	}
	return b.defaults[0]
}

// Conflicts returns the errors of For: names and defaults that are claimed twice, whether such a namespace exists or
// not, and selectors that meet in one of the namespaces given. The webhook denies a policy that adds one.
// BudgetConflicts reports disagreements among policies of one budget.
func (b Book) Conflicts(namespaces []api.Namespace) []error {
	all := slices.Clone(namespaces)
	for _, name := range slices.Sorted(maps.Keys(b.byName)) {
		if len(b.byName[name]) > 1 {
			all = append(all, api.Namespace{Name: name})
		}
	}
	found := map[string]error{}
	for _, ns := range all {
		if _, err := b.For(ns); err != nil {
			found[err.Error()] = err
		}
	}
	if len(b.defaults) > 1 {
		_, err := only(b.defaults, "all namespaces that no other governs", "give all but one of them namespaces")
		found[err.Error()] = err
	}
	var errs []error
	for _, text := range slices.Sorted(maps.Keys(found)) {
		errs = append(errs, found[text])
	}
	return errs
}

// only returns the one policy that claims the object; several are an error that names them and the next step.
func only(claims []*Policy, what, next string) (*Policy, error) {
	if len(claims) == 1 {
		return claims[0], nil
	}
	names := make([]string, len(claims))
	for i, p := range claims {
		names[i] = p.Name
	}
	return nil, fmt.Errorf("policies %s claim %s with equal right; %s", strings.Join(names, " and "), what, next)
}
