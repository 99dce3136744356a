package model

// Violation is a way to break a promise of the ledger.
type Violation struct {
	What  string
	Trace []string
	Last  World
}

// node is a world that was reached, and how.
type node struct {
	world World
	from  int
	event Event
}

// Explore walks through every world that can be reached, the nearest first, until one breaks a promise or none is
// left. It returns how many there are.
func Explore(v Variant) (worlds int, broken *Violation) {
	nodes := []node{{from: -1}}
	seen := map[World]struct{}{{}: {}}
	rules := newRules()
	for at := 0; at < len(nodes); at++ {
		if what := wrong(nodes[at].world, set(1<<v.pods()-1), rules); what != "" {
			return len(nodes), &Violation{what, trace(nodes, at), nodes[at].world}
		}
		for _, s := range v.steps(nodes[at].world, rules) {
			if _, ok := seen[s.To]; ok {
				continue
			}
			seen[s.To] = struct{}{}
			nodes = append(nodes, node{s.To, at, s.Event})
		}
	}
	return len(nodes), nil
}

// wrong names the promise that a world breaks, or "".
func wrong(w World, all set, r *rules) string {
	if w.living().size() > Limit {
		return "more lives than the quota allows"
	}
	if w.Wrong != 0 {
		return "a request was denied although there was room all the time"
	}
	if w.Over == all {
		settled := r.reconcile(w.Ledger, w.living(), all, 0)
		if settled.Reserved != 0 || int(settled.Base) != w.living().size() {
			return "the ledger is not what lives after a minute of rest"
		}
	}
	return ""
}

func trace(nodes []node, at int) (steps []string) {
	for ; nodes[at].from >= 0; at = nodes[at].from {
		steps = append([]string{nodes[at].event.String()}, steps...)
	}
	return steps
}
