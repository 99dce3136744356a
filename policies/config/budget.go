package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// maxDiffering bounds how many differing limits of a shared budget a message lists.
const maxDiffering = 3

// sharing groups the policies that name a shared budget.
func sharing(documents []*Policy) map[string][]*Policy {
	budgets := map[string][]*Policy{}
	for _, p := range documents {
		if name := p.Quota.Budget; name != "" {
			budgets[name] = append(budgets[name], p)
		}
	}
	return budgets
}

// strictestBudgets returns the documents with the limits that hold: policies that share a budget and set different ones
// are replaced by copies in which the strictest of all hold, so that a budget has one size for every request.
func strictestBudgets(documents []*Policy) []*Policy {
	out := slices.Clone(documents)
	for _, shared := range sharing(documents) {
		strictest := shared[0].Quota
		for _, p := range shared[1:] {
			strictest = strictest.strictest(p.Quota)
		}
		for _, p := range shared {
			if len(differing(p.Quota, strictest)) > 0 {
				held := *p
				held.Quota = strictest
				out[slices.Index(documents, p)] = &held
			}
		}
	}
	return out
}

// BudgetConflicts returns an error for each shared budget on whose limits its policies do not agree, naming them all.
// Until they do, the strictest of each limit holds.
func (b Book) BudgetConflicts() (errs []error) {
	for _, budget := range slices.Sorted(maps.Keys(b.budgets)) {
		shared := b.budgets[budget]
		var names, apart []string
		for _, p := range shared {
			names = append(names, p.Name)
			apart = append(apart, differing(shared[0].Quota, p.Quota)...)
		}
		slices.Sort(apart)
		apart = slices.Compact(apart)
		if len(apart) == 0 {
			continue
		}
		var texts []string
		for _, path := range apart[:min(len(apart), maxDiffering)] {
			texts = append(texts, whoSays(path, shared))
		}
		errs = append(errs, fmt.Errorf(
			"policies %s share the budget %q and limit it differently (%s); write the same limits in all of them, until then the strictest hold",
			strings.Join(names, " and "), budget, strings.Join(texts, "; ")))
	}
	return errs
}

// whoSays lists the value that each policy writes at a path of its quota.
func whoSays(path string, shared []*Policy) string {
	var texts []string
	for _, p := range shared {
		text, ok := p.Quota.texts()[path]
		if !ok {
			text = "none"
		}
		texts = append(texts, text+" in "+p.Name)
	}
	return path + ": " + strings.Join(texts, ", ")
}

// differing lists the paths at which two quotas do not say the same.
func differing(a, b QuotaSpec) (paths []string) {
	ours, theirs := a.texts(), b.texts()
	all := maps.Clone(ours)
	maps.Copy(all, theirs)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if ours[path] != theirs[path] {
			paths = append(paths, path)
		}
	}
	return paths
}

// texts are the limits of a quota by their paths.
func (q QuotaSpec) texts() map[string]string {
	out := map[string]string{}
	add := func(path string, l quota.Limits) {
		for _, d := range quota.Dimensions() {
			if n, ok := d.Limit(l); ok {
				out[path+"."+d.Name] = d.Text(n)
			}
		}
	}
	add("quota", q.Whole())
	for name, l := range q.Pools {
		add("quota.pools["+name+"]", l)
	}
	for name, l := range q.Classes {
		add("quota.classes["+name+"]", l)
	}
	return out
}

// strictest is the quota of the same budget in which every limit of both holds.
func (q QuotaSpec) strictest(other QuotaSpec) QuotaSpec {
	whole := strictestLimits(q.Whole(), other.Whole())
	return QuotaSpec{
		Budget: q.Budget, Memory: whole.Memory, Slices: whole.Slices, GPUs: whole.GPUs, Devices: whole.Devices,
		Pools: strictestParts(q.Pools, other.Pools), Classes: strictestParts(q.Classes, other.Classes),
	}
}

func strictestParts(a, b map[string]quota.Limits) map[string]quota.Limits {
	if len(a)+len(b) == 0 {
		return nil
	}
	out := map[string]quota.Limits{}
	maps.Copy(out, a)
	for name, l := range b {
		out[name] = strictestLimits(out[name], l)
	}
	return out
}

func strictestLimits(l, other quota.Limits) quota.Limits {
	return quota.Limits{Memory: least(l.Memory, other.Memory), Slices: least(l.Slices, other.Slices),
		GPUs: least(l.GPUs, other.GPUs), Devices: least(l.Devices, other.Devices)}
}

// least is the smaller of two limits; nil is none.
func least[N ~int64](a, b *N) *N {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}
