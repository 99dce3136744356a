package policydocs

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// maxNamed bounds how many namespaces a warning names.
const maxNamed = 5

// authorityChange is a change of the authority's policies, checked against those in force and the namespaces.
type authorityChange struct {
	snapshot   *cluster.Snapshot
	namespaces []api.Namespace
}

// written finds the errors of a policy, alone and beside the others. governed: the ConfigMap was a policy before.
func (a authorityChange) written(c change, governed bool, found *findings) {
	policy, problems := config.ParseConfigMap(c.after, config.Parse)
	if policy == nil {
		found.problems = problems
		return
	}
	others := a.snapshot.PoliciesWithout(c.after.Name)
	if len(others) >= cluster.MaxPolicies {
		found.problems = append(found.problems,
			errors.New("there are "+strconv.Itoa(len(others))+" policies, which is as many as are read; give one of them more namespaces instead"))
	}
	before, after := a.snapshot.Book(), config.NewBook(append(others, policy))
	claimed := a.claimed(policy)
	standing := before.Conflicts(claimed)
	for _, err := range after.Conflicts(claimed) {
		if alreadyPresent(standing, err) {
			found.warn("as before: %v", err) // denying it would keep anyone from repairing one of the two
			continue
		}
		found.problems = append(found.problems, err)
	}
	a.budget(c, governed, policy, after, found)
	found.warnings = append(found.warnings, policies.Lint(policy, a.snapshot.Pools())...)
	found.absent = a.absent(policy)
	if governed {
		a.lost(policy.Name, after, found)
		old, _ := config.ParseConfigMap(c.before, config.Parse)
		lowered(old, policy, found)
	}
}

// lowered warns of limits that pods which run already may be beyond.
func lowered(before, after *config.Policy, found *findings) {
	if before == nil || after.Off() {
		return
	}
	if fields := after.Lowered(before); len(fields) > 0 {
		found.warn("%s: lower than before. Running pods keep what they have: gpuslice audit --include-enforced lists those that would be denied now, gpuslice quota the usage",
			strings.Join(fields, ", "))
	}
}

// budget denies a policy that joins a shared budget with other limits. Of those that are in it already one has to
// change first: until the others follow the strictest limits hold, so that is a warning.
func (a authorityChange) budget(c change, governed bool, policy *config.Policy, after config.Book, found *findings) {
	member := false
	if governed {
		old, _ := config.ParseConfigMap(c.before, config.Parse)
		member = old != nil && old.Quota.Budget == policy.Quota.Budget
	}
	for _, err := range after.BudgetConflicts() {
		switch {
		case alreadyPresent(a.snapshot.Book().BudgetConflicts(), err):
		case member:
			found.warn("%v", err)
		default:
			found.problems = append(found.problems, err)
		}
	}
}

// claimed are the namespaces that a policy claims by name or labels.
func (a authorityChange) claimed(policy *config.Policy) (claimed []api.Namespace) {
	if policy.Namespaces == nil {
		return nil
	}
	alone := config.NewBook([]*config.Policy{policy})
	for _, ns := range a.namespaces {
		if p, err := alone.For(ns); p != nil || err != nil {
			claimed = append(claimed, ns)
		}
	}
	return claimed
}

// lost warns of namespaces that the policy governs and, after the change, does not.
func (a authorityChange) lost(name string, after config.Book, found *findings) {
	byFollower := map[string][]string{}
	for _, ns := range a.namespaces {
		had, err := a.snapshot.Book().For(ns)
		if err != nil || had == nil || had.Name != name || had.Off() || strings.HasPrefix(ns.Name, "kube-") {
			continue
		}
		if has, err := after.For(ns); err == nil && (has == nil || has.Name != name) {
			follower := ""
			if has != nil {
				follower = has.Name
			}
			byFollower[follower] = append(byFollower[follower], ns.Name)
		}
	}
	for _, follower := range slices.Sorted(maps.Keys(byFollower)) {
		what := "policy " + follower + " governs there then"
		if follower == "" {
			what = "no policy governs there then: new pods get no slice, and limits and quota end"
		}
		found.warn("policy %s no longer governs %s; %s", name, named(byFollower[follower]), what)
	}
}

// absent are the namespaces that a policy names and that are not in the cache: most often a typing mistake.
func (a authorityChange) absent(policy *config.Policy) []string {
	if policy.Namespaces == nil {
		return nil
	}
	there := map[string]bool{}
	for _, ns := range a.namespaces {
		there[ns.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(policy.Namespaces.Names), func(name string) bool { return there[name] })
}

// named lists the first of several namespaces.
func named(namespaces []string) string {
	word := "namespace "
	if len(namespaces) > 1 {
		word = "namespaces "
	}
	text := word + strings.Join(namespaces[:min(len(namespaces), maxNamed)], ", ")
	if rest := len(namespaces) - maxNamed; rest > 0 {
		text += " and " + strconv.Itoa(rest) + " more"
	}
	return text
}

// alreadyPresent reports whether an error was there before.
func alreadyPresent(before []error, err error) bool {
	return slices.ContainsFunc(before, func(e error) bool { return e.Error() == err.Error() })
}
