package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/policies"
)

const explainLong = `Say which policy, pool, strategy, slice and enforcement a pod gets, and why not the others. Workloads are explained
by the pods that they make; objects that hold no pod are left out.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "ExplainList", "items": [...], "errors": [...],
"pools": [...]}. An item has what an item of render has but the object, and planned, charge, containers and candidates.

Exit codes: 0 rewritten or left alone, 3 at least one pod is refused, 2 bad usage or input, 1 internal error.`

const explainExample = `  # why does my pod go there, and what holds its slice
  gpuslice explain -f pod.yaml --policies policies/ --nodes nodes.yaml -n team-a

  # the same for tools
  gpuslice explain -f pod.yaml --policies policies/ --nodes nodes.yaml -o json | jq '.items[].candidates'`

func newExplainCommand(s streams) *cobra.Command {
	var f subjectFlags
	cmd := &cobra.Command{
		Use:     "explain -f FILE|DIRECTORY|- [flags]",
		Short:   "Say which policy, pool, strategy and slice a pod gets, and why not the others",
		Long:    explainLong,
		Example: explainExample,
		RunE:    func(*cobra.Command, []string) error { return explain(&f, s) },
	}
	f.register(cmd, "text", "json")
	return cmd
}

func explain(f *subjectFlags, s streams) error {
	a, err := f.answer(s, func(result) []string { return nil })
	if err != nil {
		return err
	}
	if f.output == "json" {
		err = printJSON(s.out, explainList(a))
	} else {
		err = explainAll(s.out, a)
	}
	if err != nil {
		return err
	}
	return a.tally.exit()
}

// explained is an item of explain -o json.
type explained struct {
	verdict
	Planned    *policies.Planned            `json:"planned"`
	Charge     *policies.Charge             `json:"charge"`
	Containers []policies.PromisedContainer `json:"containers"`
	Candidates []policies.CandidateReport   `json:"candidates"`
}

// explanation is the document of explain -o json.
type explanation struct {
	listing[explained]
	Pools []policies.Pool `json:"pools"`
}

func explainList(a *answers) explanation {
	list := listing[explained]{APIVersion: outputVersion, Kind: "ExplainList", Items: []explained{}, Errors: a.errorsPrinted()}
	for _, r := range a.results {
		if r.decision.Why == whyNoPod {
			continue
		}
		item := explained{verdict: r.verdict(), Planned: r.decision.Planned, Containers: []policies.PromisedContainer{}, Candidates: listOf(r.decision.Candidates)}
		if p := r.decision.Promise; p != nil {
			item.Charge, item.Containers = &p.Charge, listOf(p.Containers)
		}
		list.Items = append(list.Items, item)
	}
	return explanation{list, listOf(a.cluster.pools)}
}

func explainAll(out io.Writer, a *answers) error {
	for i, r := range a.results {
		if r.decision.Why == whyNoPod {
			continue
		}
		p := page{}
		if i > 0 {
			p.line("")
		}
		p.explain(r, len(a.cluster.pools))
		if err := p.print(out); err != nil {
			return err
		}
	}
	return nil
}
