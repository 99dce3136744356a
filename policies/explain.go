package policies

import "slices"

// weighRest equips the candidates behind the chosen one, which are not tried otherwise, so that a report can say what
// each would reach. It returns why some would not do.
func weighRest(in *Input, req Request, fitting []candidate, chosen *candidate) (misfits []misfit) {
	behind := false
	for i := range fitting {
		c := &fitting[i]
		if behind {
			if v := equip(in, req, c); v != nil {
				misfits = append(misfits, misfit{kind: misfitRule, pool: c.pool(), violation: v})
			}
		}
		behind = behind || c == chosen
	}
	return misfits
}

// report lists the candidates for people: the chosen one, those that would have done, and why the others do not.
func report(fitting []candidate, misfits []misfit, chosen *candidate) []CandidateReport {
	var out []CandidateReport
	for i := range fitting {
		c := &fitting[i]
		r := CandidateReport{Strategy: c.strategy.Name, Pool: c.pool().Name, Resource: c.pool().Resource, Slice: c.containers[0].size.slice.String(), Tier: c.tier(), Chosen: c == chosen}
		if !r.Chosen {
			r.Why = "another comes before it (policy's order of strategies, then the least waste)"
		}
		if j := slices.IndexFunc(misfits, func(m misfit) bool { return m.kind == misfitRule && m.pool == c.pool() }); j >= 0 && !r.Chosen {
			r.Why, r.Tier = misfits[j].String(), ""
		}
		out = append(out, r)
	}
	for _, m := range misfits {
		if slices.ContainsFunc(fitting, func(c candidate) bool { return c.pool() == m.pool }) {
			continue
		}
		out = append(out, CandidateReport{Strategy: m.pool.Strategy, Pool: m.pool.Name, Resource: m.pool.Resource, Why: m.String()})
	}
	return out
}

// CandidateReport says how one way to place the pod fared: for explain.
type CandidateReport struct {
	Strategy StrategyName `json:"strategy"`
	Pool     string       `json:"pool"`
	Resource string       `json:"resource"`
	Chosen   bool         `json:"chosen,omitempty"`
	Slice    string       `json:"slice,omitempty"`
	Tier     Tier         `json:"tier,omitempty"`
	Why      string       `json:"why,omitempty"` // why it was not chosen
}
