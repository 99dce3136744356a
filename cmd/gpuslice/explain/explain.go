// Package explain is the command that shows the slices of a pod, and why not others; or, for a pod or workload of a
// cluster, its request, its slices, the observations, and why it is pending or ended.
//
//	files: preview.Run -> page
//	names: gather(cluster, name) -> facts -> summarize -> status
//
// summarize is a pure function of the facts. The Promise on the pod records the request and the slices, so neither
// policies nor pools have to be read, and tenants can explain their own pods.
package explain

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/cmd/client/preview"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

const long = `With -f: show which policy, pool, strategy, slice and enforcement a pod gets, and why it gets nothing else. A workload is
explained by the pods that it creates, one for each pod template in it, whatever its kind; objects without a pod are left out. If no file describes a cluster, policies, nodes
and namespaces come from the current one: see render.

With a name: show what became of a pod in the cluster, or of the pods of a deployment, replicaset, statefulset, daemonset,
job or cronjob: what it requested, what it was given, what is observed, relevant Events, and why it is
pending, was denied, or ended. The only right it takes is to read pods and Events in the namespace.

What is alike is grouped. -o wide shows each pool, variable, mount, pod and Event by itself.

With -f, -o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "ExplainList", "items": [...], "errors":
[...], "pools": [...]}. An item has the fields of a render item but object, and planned, charge, containers, candidates and claimed.
A pool has name, strategy, resource, device, deviceMemory, usable, replicas, nodes and notes. With a name, it prints one
document of kind Explanation: object, state, node, requested, given, claimed, observed, reasons, nodes, events, pods and notes.`

const example = `  # why is this pod pending, or what ended it
  gpuslice explain train-0 -n team-a

  # why are there no pods
  gpuslice explain deployment/train -n team-a

  # why would my pod run there, and what enforces its slice
  gpuslice explain -f pod.yaml --policies policies/ --nodes nodes.yaml -n team-a

  # the same for tools
  gpuslice explain -f pod.yaml --policies policies/ --nodes nodes.yaml -o json | jq '.items[].candidates'`

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var f preview.Flags
	cmd := &cobra.Command{
		Use:     "explain POD|KIND/NAME|-f FILE [flags]",
		Short:   "Show what a pod gets and why, before or after it is created",
		Long:    long,
		Example: example,
		Args:    cobra.ArbitraryArgs,
		PreRunE: func(_ *cobra.Command, args []string) error { return check(&f, args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return explainName(cmd.Context(), &f, args[0], s)
			}
			return explainFiles(cmd.Context(), &f, s)
		},
	}
	f.Register(cmd, s, append(cli.TextOrJSON(), cli.Wide, cli.YAML, cli.JSONPath)...)
	f.Output.RegisterHeaders(cmd.Flags())
	f.Kube.CompletePods(cmd, s)
	return cmd
}

func check(f *preview.Flags, args []string) error {
	switch {
	case len(args) == 0 && len(f.Filenames) == 0:
		return errors.New("nothing to explain: name a pod (POD), a workload (KIND/NAME), or files with -f")
	case len(args) == 0:
		return f.Check()
	case len(args) > 1 || len(f.Filenames) > 0:
		return errors.New("explain takes one name, or files with -f")
	}
	return nil
}

// explainFiles explains the decisions on objects.
func explainFiles(ctx context.Context, f *preview.Flags, s cli.Streams) error {
	all, err := f.Run(ctx, s, func(preview.Result) []string { return nil })
	if err != nil {
		return err
	}
	err = f.Output.Print(s.Out,
		cli.Answer{Document: documentOf(all), Page: func() *cli.Page { return &pageOf(all, f.Output.Format == cli.Wide).Page }})
	if err != nil {
		return err
	}
	return all.Exit()
}

// explainName explains the state of an object of the cluster.
func explainName(ctx context.Context, f *preview.Flags, name string, s cli.Streams) error {
	connection, err := f.Kube.Connect(s)
	if err != nil {
		return err
	}
	facts, err := gather(ctx, connection.Client, connection.Namespace, name)
	if err != nil {
		return err
	}
	found := summarize(facts)
	err = f.Output.Print(s.Out,
		cli.Answer{Document: found, Page: func() *cli.Page { return &statusPage(found, f.Output.Format == cli.Wide).Page }})
	switch {
	case err != nil:
		return err
	case found.State == missing:
		return cli.ExitError(cli.ExitNoAnswer)
	case found.denied:
		return cli.ExitError(cli.ExitDenied)
	}
	return nil
}

// explained is an item of -o json with files.
type explained struct {
	preview.Report
	Planned    *promise.Planned      `json:"planned"`
	Charge     *quota.Charge         `json:"charge"`
	Containers []promise.Container   `json:"containers"`
	Candidates []api.CandidateReport `json:"candidates"`
	Claimed    []string              `json:"claimed,omitempty"`
}

// document is -o json with files.
type document struct {
	cli.List[explained]
	Pools []clusters.Pool `json:"pools"`
}

func documentOf(all *preview.Results) document {
	items := []explained{}
	for _, r := range all.Items {
		if !r.HoldsPod() {
			continue
		}
		item := explained{Report: r.Report(), Planned: r.Decision.Planned, Containers: []promise.Container{},
			Candidates: cli.NonNil(r.Decision.Candidates), Claimed: r.Claimed}
		if r.Holding != nil {
			item.Charge = &r.Holding.Charge
		}
		if p := r.Decision.Promise; p != nil {
			item.Containers = cli.NonNil(p.Containers)
		}
		items = append(items, item)
	}
	return document{cli.NewList("ExplainList", items, manifest.Printed(all.Errors)...), clusters.PrintedPools(all.Cluster.Pools)}
}
