package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

const explainLong = `With -f: say which policy, pool, strategy, slice and enforcement a pod gets, and why not the others. Workloads are
explained by the pods that they make; objects that hold no pod are left out. Where no file is named about a cluster,
policies, nodes and namespaces of the cluster at hand count: see render.

With a name: tell what became of a pod of the cluster, or of the pods of a deployment, replicaset, statefulset, daemonset,
job or cronjob: what was asked, given and planned, what is observed, what was said about it, and why it waits, was
refused, or ended. That takes no right but to read pods and Events of the namespace. -o json prints one document of kind
Life.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "ExplainList", "items": [...], "errors": [...],
"pools": [...]}. An item has what an item of render has but the object, and planned, charge, containers and candidates. A
pool has name, strategy, resource, device, deviceMemory, usable, replicas, nodes and notes.

Exit codes: 0 rewritten or left alone, or told; 3 at least one pod is refused; 2 bad usage or input, or no such object;
1 internal error.`

const explainExample = `  # why does this pod wait, or what ended it
  gpuslice explain train-0 -n team-a

  # why are there no pods
  gpuslice explain deployment/train -n team-a

  # why would my pod go there, and what holds its slice
  gpuslice explain -f pod.yaml --policies policies/ --nodes nodes.yaml -n team-a

  # the same for tools
  gpuslice explain -f pod.yaml --policies policies/ --nodes nodes.yaml -o json | jq '.items[].candidates'`

func newExplainCommand(s streams) *cobra.Command {
	var f subjectFlags
	cmd := &cobra.Command{
		Use:     "explain POD|KIND/NAME|-f FILE [flags]",
		Short:   "Say what a pod gets and why not something else, or what became of one that is there",
		Long:    explainLong,
		Example: explainExample,
	}
	f.register(cmd, "text", "json")
	cmd.Args = cobra.ArbitraryArgs
	checkFiles := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return checkFiles(cmd, args)
		case len(args) > 1 || len(f.filenames) > 0:
			return errors.New("explain takes one name, or files with -f")
		}
		return checkOutput(f.output, []string{"text", "json"})
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return tellLife(cmd.Context(), &f, args[0], s)
		}
		return explain(cmd.Context(), &f, s)
	}
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
	Planned    *promise.Planned      `json:"planned"`
	Charge     *quota.Charge         `json:"charge"`
	Containers []promise.Container   `json:"containers"`
	Candidates []api.CandidateReport `json:"candidates"`
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
		item := explained{verdict: r.verdict(), Planned: r.decision.Planned, Containers: []promise.Container{}, Candidates: listOf(r.decision.Candidates)}
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
