// Package render is the command that prints objects as they come out of the webhook.
package render

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/cmd/client/preview"
)

const long = `Print objects as they come out of the webhook: pods, and workloads with the pods that they create. An object without a pod
is printed as it is; a denied one is not printed. Lists come out as their items. Unknown fields are kept.

If --policies, --nodes or --namespaces name files, render connects to no cluster and reads nothing but the files.
Otherwise it reads policies, nodes and namespaces from the current cluster; with --kubeconfig or --context beside files it
reads from that cluster what no file gives. --dry-run=server uses the API server instead, by a dry-run create that stores
nothing: the cluster's webhooks answer, those of others included, and the only right it takes is to create the object.

-o yaml prints a stream of documents, -o diff a unified diff of each object that changes (of sorted YAML), -o json one
document, {"apiVersion": "gpuslice.dev/v1", "kind": "RenderList", "items": [...], "errors": [...]}, in which an item has
source, document, item, kind, namespace, name, template (the path of the pod template in a kind that Kubernetes does not have),
outcome ("mutated", "devices-hidden", "unchanged", "denied"), ifEnforced, mode, policy, reason, violations, warnings and object
(null if denied). An object with several templates has an item for each. Fields may be added; these stay.`

const example = `  # what the current cluster would make of a pod
  gpuslice render -f pod.yaml -n team-a

  # the same by its webhooks
  gpuslice render -f pod.yaml -n team-a --dry-run=server -o diff

  # a policy that is not applied yet, on the nodes of a cluster
  gpuslice render -f pod.yaml --policies policies/ --context production

  # without a cluster: policies and nodes from files
  gpuslice render -f pod.yaml --policies policies/ --nodes nodes.yaml -n team-a

  # what would change in a directory of manifests
  gpuslice render -f manifests/ --policies policies/ --nodes nodes.yaml -o diff

  # a chart
  helm template ./chart | gpuslice render -f - -n team-a -o json`

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var f preview.Flags
	cmd := &cobra.Command{
		Use:     "render -f FILE|DIRECTORY|- [flags]",
		Short:   "Print objects as they come out of the webhook",
		Long:    long,
		Example: example,
		PreRunE: func(*cobra.Command, []string) error { return f.Check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), &f, s) },
	}
	f.Register(cmd, s, "yaml", "json", "diff")
	return cmd
}

func run(ctx context.Context, f *preview.Flags, s cli.Streams) error {
	all, err := f.Run(ctx, s, preview.Result.Lines)
	if err != nil {
		return err
	}
	switch f.Output.Format {
	case "json":
		err = cli.PrintJSON(s.Out, listOf(all))
	case "diff":
		err = printDiffs(s, all.Items)
	default:
		err = printObjects(s, all.Items)
	}
	if err != nil {
		return err
	}
	return all.Exit()
}

// printObjects prints objects that were not denied.
func printObjects(s cli.Streams, results []preview.Result) error {
	stream := cli.Objects{Out: s.Out}
	for _, r := range results {
		if r.After == nil || !r.First() {
			continue
		}
		if err := stream.Print(r.After); err != nil {
			return err
		}
	}
	return nil
}

// printDiffs prints how each object changes.
func printDiffs(s cli.Streams, results []preview.Result) error {
	for _, r := range results {
		if r.After == nil || !r.First() || bytes.Equal(r.After, r.Raw) {
			continue
		}
		text, err := manifest.Diff(r.Object, r.After, "as it comes out")
		if err != nil {
			return err
		}
		if err := s.PrintDiff(text); err != nil {
			return err
		}
	}
	return nil
}

// rendered is an item of -o json.
type rendered struct {
	preview.Report
	Object json.RawMessage `json:"object"` // null: denied
}

func listOf(all *preview.Results) cli.List[rendered] {
	items := []rendered{}
	for _, r := range all.Items {
		items = append(items, rendered{r.Report(), r.After})
	}
	return cli.NewList("RenderList", items, manifest.Printed(all.Errors)...)
}
