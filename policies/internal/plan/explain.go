package plan

import (
	"slices"

	"github.com/gpuslice/gpuslice/policies/api"
)

// evaluated is a candidate with the tiers of its slices.
type evaluated struct {
	*candidate
	violation *api.Violation // why it may not be used; nil: it may
}

// evaluateAll evaluates all candidates, so that a report can list the tiers of each: otherwise the first that fits is
// enough.
func evaluateAll(in *Input, req api.Request, fitting []candidate) []evaluated {
	all := make([]evaluated, len(fitting))
	for i := range fitting {
		all[i].candidate, all[i].violation = evaluate(in, req, &fitting[i])
	}
	return all
}

// report lists the candidates for people: the chosen one, those that would have done, and why the others do not.
func report(all []evaluated, unfit []*FitError, chosen *candidate) []api.CandidateReport {
	var out []api.CandidateReport
	for _, c := range all {
		r := api.CandidateReport{Strategy: c.strategy.Name, Pool: c.pool().Name,
			Resource: c.pool().Offer(), Slice: c.containers[0].size.slice.String()}
		switch {
		case chosen != nil && c.pool() == chosen.pool():
			r.Tier, r.Chosen = chosen.tier(), true
		case c.violation != nil:
			r.Why = c.violation.String()
		default:
			r.Tier, r.Why = c.tier(), "another comes before it (pools with nodes, then policy's order of strategies, then the least waste)"
		}
		out = append(out, r)
	}
	for _, e := range unfit {
		if !slices.ContainsFunc(all, func(c evaluated) bool { return c.pool() == e.pool }) {
			out = append(out, api.CandidateReport{Strategy: e.pool.Strategy, Pool: e.pool.Name, Resource: e.pool.Offer(), Why: e.Error()})
		}
	}
	return out
}
