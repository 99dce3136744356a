package plan

import (
	"slices"

	"github.com/gpuslice/gpuslice/policies/api"
)

// evaluateRest evaluates the candidates behind the chosen one, which are not tried otherwise, so that a report can say what
// each would reach. It returns why some would not do.
func evaluateRest(in *Input, req api.Request, fitting []candidate, chosen *candidate) (unfit []*FitError) {
	behind := false
	for i := range fitting {
		c := &fitting[i]
		if behind {
			if v := evaluate(in, req, c); v != nil {
				unfit = append(unfit, &FitError{kind: kindRule, pool: c.pool(), violation: v})
			}
		}
		behind = behind || c == chosen
	}
	return unfit
}

// report lists the candidates for people: the chosen one, those that would have done, and why the others do not.
func report(fitting []candidate, unfit []*FitError, chosen *candidate) []api.CandidateReport {
	var out []api.CandidateReport
	for i := range fitting {
		c := &fitting[i]
		r := api.CandidateReport{Strategy: c.strategy.Name, Pool: c.pool().Name, Resource: c.pool().Offer(), Slice: c.containers[0].size.slice.String(), Tier: c.tier(), Chosen: c == chosen}
		if !r.Chosen {
			r.Why = "another comes before it (pools with nodes, then policy's order of strategies, then the least waste)"
		}
		if j := slices.IndexFunc(unfit, func(e *FitError) bool { return e.kind == kindRule && e.pool == c.pool() }); j >= 0 && !r.Chosen {
			r.Why, r.Tier = unfit[j].Error(), ""
		}
		out = append(out, r)
	}
	for _, e := range unfit {
		if slices.ContainsFunc(fitting, func(c candidate) bool { return c.pool() == e.pool }) {
			continue
		}
		out = append(out, api.CandidateReport{Strategy: e.pool.Strategy, Pool: e.pool.Name, Resource: e.pool.Offer(), Why: e.Error()})
	}
	return out
}
