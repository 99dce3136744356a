package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/policies"
)

const explainLong = `Say which policy, pool, strategy, slice and enforcement a pod gets, and why not the others. Workloads are explained
by the pods that they make; objects that hold no pod are left out.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "ExplainList", "items": [...], "errors": [...],
"pools": [...]}. An item has what an item of render has but the object, and planned, charge, containers and candidates. A
pool has name, strategy, resource, device, deviceMemory, usable, replicas, nodes and notes.

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
		RunE:    func(cmd *cobra.Command, _ []string) error { return explain(cmd.Context(), &f, s) },
	}
	f.register(cmd, "text", "json")
	return cmd
}

func explain(ctx context.Context, f *subjectFlags, s streams) error {
	a, err := f.answer(ctx, s, func(result) []string { return nil })
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
	Pools []poolPrinted `json:"pools"`
}

func explainList(a *answers) explanation {
	list := listing[explained]{APIVersion: outputVersion, Kind: "ExplainList", Items: []explained{}, Errors: errorsPrinted(a.errors)}
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
	return explanation{list, poolsPrinted(a.cluster.pools)}
}

// explainAll prints an explanation of each object, and then the pools that all of them had to choose from.
func explainAll(out io.Writer, a *answers) error {
	p := page{}
	for _, r := range a.results {
		if r.decision.Why != whyNoPod {
			p.explain(r)
		}
	}
	if len(p.blocks) > 0 {
		p.pools(poolsPrinted(a.cluster.pools))
	}
	return p.print(out)
}
