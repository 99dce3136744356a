// Package list is the command that lists slices: the requests of living pods' containers, their slices, and the
// enforcement. All of that is recorded on the pods.
package list

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
)

const long = `List the slices of a namespace, a node or the cluster, one line for each container of a pod that has neither succeeded nor
failed: what it requested, the slice it was given, what was planned to enforce the slice, what was observed, status, pool,
node and age. All of it is recorded on the pods, so the right to list pods is enough. Pods to which gpuslice gave nothing are left out.
-o wide adds resource, memory limit, compute, strategy and policy.

-w prints a line for each slice that is added, changes or goes, until the API server closes the watch or you interrupt it.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "SliceList", "items": [...], "errors": [...]}. An item
has namespace, pod, container, requested, resource, count (devices or replicas), memory (on each of them), memoryLimit,
compute, strategy, pool, policy, node, status, planned and observed (tiers; ["none"]: nothing enforces the slice; absent: nothing is
observed yet) and created.
With -w it prints one item after the other. -o name prints the pods.`

const example = `  # the slices of my team
  gpuslice list -n team-a

  # who is on that node
  gpuslice list --node gpu-node-1 -o wide

  # slices that nothing enforces
  gpuslice list -A -o json | jq '.items[] | select(.observed == ["none"])'

  # the pods of a training run, as they start
  gpuslice list -n team-a -l job-name=train -w

  # the memory of each pod
  gpuslice list -n team-a -o jsonpath='{range .items[*]}{.pod} {.memory}{"\n"}{end}'`

// options are the command's flags.
type options struct {
	pods   kube.PodFlags
	output cli.Output
	watch  bool
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "list [-n NAMESPACE | -A] [-l SELECTOR] [--node NODE]",
		Short:   "List the slices of a namespace, a node or the cluster",
		Long:    long,
		Example: example,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if o.watch && !cmd.Flags().Changed("request-timeout") {
				o.pods.Timeout = 0
			}
			return o.pods.Check()
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.watch, "watch", "w", false, "after listing, watch for changes")
	o.output.Register(cmd, cli.Wide, cli.YAML, cli.Name, cli.JSONPath)
	o.pods.Register(cmd, s, "list")
	return cmd
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	if _, err := o.pods.Connect(s); err != nil {
		return err
	}
	found := listed{}
	var err error
	if found.version, err = o.pods.Each(ctx, found.add); err != nil {
		return err
	}
	p := printer{options: o, streams: s}
	for _, problem := range found.unread {
		p.report(problem)
	}
	if o.watch {
		return p.follow(ctx, found)
	}
	if len(found.slices) == 0 && !p.forTools() {
		fmt.Fprintln(s.Err, o.pods.Nothing())
	} else if err := p.print(found); err != nil {
		return err
	}
	return cli.Tally{NoAnswer: len(found.unread) > 0}.Exit()
}
