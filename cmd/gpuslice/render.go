package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
)

const renderLong = `Print objects as they come out of the webhook: pods, and workloads with the pods that they make. What holds no
pod is printed as it is; what is refused is not printed. Lists come out as their items. Unknown fields are kept.

Where --policies, --nodes or --namespaces name files, nothing connects to a cluster, and what is not in them is not
there. Where they name none, the policies, nodes and namespaces of the cluster at hand count; --kubeconfig or --context
beside files takes from that cluster what no file gives. --server asks the API server instead, by a dry-run create that
stores nothing: its webhooks answer, others beside gpuslice's too, and it needs no right but to create the object.

-o yaml prints a stream of documents, -o diff a unified diff of each object that changes (of sorted YAML), -o json one
document, {"apiVersion": "gpuslice.dev/v1", "kind": "RenderList", "items": [...], "errors": [...]}, in which an item has
source, document, item, kind, namespace, name, outcome ("rewritten", "voided", "left-alone", "refused"), would, mode,
policy, reason, violations, warnings and object (null where refused). New fields may come; these stay.

Exit codes: 0 rewritten or left alone, 3 at least one object is refused, 2 bad usage or input, 1 internal error.`

const renderExample = `  # what the cluster at hand would make of a pod
  gpuslice render -f pod.yaml -n team-a

  # the same by asking its webhooks
  gpuslice render -f pod.yaml -n team-a --server -o diff

  # a policy that is not applied yet, on the nodes of a cluster
  gpuslice render -f pod.yaml --policies policies/ --context production

  # a pod under the policies and nodes of a cluster
  gpuslice render -f pod.yaml --policies policies/ --nodes nodes.yaml -n team-a

  # what would change in a folder of manifests
  gpuslice render -f manifests/ --policies policies/ --nodes nodes.yaml -o diff

  # a chart
  helm template ./chart | gpuslice render -f - -n team-a -o json`

func newRenderCommand(s streams) *cobra.Command {
	var f subjectFlags
	cmd := &cobra.Command{
		Use:     "render -f FILE|DIRECTORY|- [flags]",
		Short:   "Print objects as they come out of the webhook",
		Long:    renderLong,
		Example: renderExample,
		RunE:    func(cmd *cobra.Command, _ []string) error { return render(cmd.Context(), &f, s) },
	}
	f.register(cmd, "yaml", "json", "diff")
	return cmd
}

func render(ctx context.Context, f *subjectFlags, s streams) error {
	a, err := f.answer(ctx, s, result.reasons)
	if err != nil {
		return err
	}
	switch f.output {
	case "json":
		err = printJSON(s.out, renderList(a))
	case "diff":
		err = printDiffs(s, a.results)
	default:
		err = printObjects(s.out, a.results)
	}
	if err != nil {
		return err
	}
	return a.tally.exit()
}

// printObjects prints what was not refused as a stream of YAML documents.
func printObjects(out io.Writer, results []result) error {
	separator := ""
	for _, r := range results {
		if r.after == nil {
			continue
		}
		text, err := yaml.JSONToYAML(r.after)
		if err != nil {
			return fmt.Errorf("%w: print %s: %w", errInternal, r, err)
		}
		if _, err := fmt.Fprintf(out, "%s%s", separator, text); err != nil {
			return fmt.Errorf("print %s: %w", r, err)
		}
		separator = "---\n"
	}
	return nil
}

// printDiffs prints how each object that is rewritten changes.
func printDiffs(s streams, results []result) error {
	paint := plain
	if colourful(s.out, s.getenv) {
		paint = coloured
	}
	for _, r := range results {
		if o := r.decision.Outcome; o != policies.Rewritten && o != policies.Voided {
			continue
		}
		before, err := yaml.JSONToYAML(r.raw)
		if err != nil {
			return fmt.Errorf("%w: print %s: %w", errInternal, r, err)
		}
		after, err := yaml.JSONToYAML(r.after)
		if err != nil {
			return fmt.Errorf("%w: print %s: %w", errInternal, r, err)
		}
		text := unified(r.String()+" (as written)", r.String()+" (as it comes out)", string(before), string(after))
		if _, err := io.WriteString(s.out, paint(text)); err != nil {
			return fmt.Errorf("print %s: %w", r, err)
		}
	}
	return nil
}
