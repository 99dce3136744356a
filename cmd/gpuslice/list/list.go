// Package list is the command that lists slices: what the containers of living pods requested, what they were given, and what
// enforces it. All of that is recorded on the pods.
package list

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
)

const long = `List the slices of a namespace, a node or the cluster, one line for each container of a pod that has neither succeeded nor
failed: what it requested, the slice it was given, what was planned to enforce the slice, what was observed, status, pool,
node and age. -o wide adds resource, memory limit, compute, strategy and policy. All of it is recorded on the pods, so the
right to list pods is enough. Pods to which gpuslice gave nothing are left out.

-w prints a line for each slice that is added, changes or goes, until the API server closes the watch or you interrupt it.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "SliceList", "items": [...], "errors": [...]}. An item
has namespace, pod, container, requested, resource, count (devices or replicas), memory (on each of them), memoryLimit,
compute, strategy, pool, policy, node, status, planned and observed (tiers; absent: nothing is observed yet) and created.
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
	kube           kube.Flags
	output         cli.Output
	all, watch     bool
	selector, node string
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "list [-n NAMESPACE | -A] [-l SELECTOR] [--node NODE]",
		Short:   "List the slices of a namespace, a node or the cluster",
		Long:    long,
		Example: example,
		Args:    cli.NoArguments,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if o.watch && !cmd.Flags().Changed("request-timeout") {
				o.kube.Timeout = 0
			}
			return o.check()
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	o.kube.Register(flags)
	o.kube.RegisterNamespace(flags, "to list (default: with --node all, else the context's, else \"default\")")
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "list the slices of every namespace")
	flags.StringVarP(&o.selector, "selector", "l", "", "label `SELECTOR` of the pods: KEY=VALUE, KEY!=VALUE, KEY in (A,B); comma-separated")
	flags.StringVar(&o.node, "node", "", "only the slices on this `NODE`")
	flags.BoolVarP(&o.watch, "watch", "w", false, "after listing, watch for changes")
	o.output.Register(flags, cli.Wide, cli.YAML, cli.Name, cli.JSONPath)
	o.kube.CompleteNamespaces(cmd, s)
	return cmd
}

func (o *options) check() error {
	if o.all && o.kube.Namespace != "" {
		return errors.New("-n names one namespace, and -A means all: leave out one of them")
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return fmt.Errorf("-l %q: %w", o.selector, err)
	}
	o.all = o.all || o.node != "" && o.kube.Namespace == ""
	return o.output.Check()
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	connection, err := o.kube.Connect(s)
	if err != nil {
		return err
	}
	namespace := connection.Namespace
	if o.all {
		namespace = metav1.NamespaceAll
	}
	r := reader{pods: connection.Client.CoreV1().Pods(namespace), selector: o.selector, node: o.node}
	found, err := r.list(ctx)
	if err != nil {
		return o.forbidden(err)
	}
	p := printer{options: o, streams: s}
	for _, problem := range found.unread {
		p.report(problem)
	}
	if o.watch {
		return p.follow(ctx, &r, found)
	}
	if len(found.slices) == 0 && !p.forTools() {
		fmt.Fprintln(s.Err, o.nothing(namespace))
	} else if err := p.print(found); err != nil {
		return err
	}
	tally := cli.Tally{NoAnswer: len(found.unread) > 0}
	return tally.Exit()
}

// forbidden adds, to what a tenant may not list, the way that needs no such right.
func (o *options) forbidden(err error) error {
	if apierrors.IsForbidden(err) && o.all {
		return fmt.Errorf("%w; list one of your namespaces: gpuslice list -n NAMESPACE", err)
	}
	return err
}

// nothing is kubectl's sentence about an empty list.
func (o *options) nothing(namespace string) string {
	text := "No slices found"
	if o.node != "" {
		text += " on node " + o.node
	}
	if namespace != metav1.NamespaceAll {
		text += " in " + namespace + " namespace"
	}
	return text + "."
}
