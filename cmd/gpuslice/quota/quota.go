package quota

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
)

const long = `Show quota usage: what living pods hold, what is reserved for admitted pods that are not listed yet, and the limit, for
each budget and each pool or class that it limits separately; and the pods that hold the most.

Those who may read policies, ledgers and namespaces see any namespace, and all of them with -A. For others the webhook
answers about one namespace, by a dry-run that creates nothing and takes only the right to create pods there. Usage was
counted within the last minute, or within seconds if pods come and go.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "QuotaList", "items": [...], "errors": []}. An item has
budget, namespaces (those that share it, as far as they may be read), policy, counted (false: the webhook has not counted
yet), figures (quota, namespace, part, dimension, limit, used, reserved; memory in bytes), more and holders (namespace, pod,
memory, slices, gpus, promised, untrusted). -o name prints the budgets.`

const example = `  # what is left for my team
  gpuslice quota -n team-a

  # every budget of the cluster
  gpuslice quota -A

  # those that are full
  gpuslice quota -A -o json | jq '.items[] | select(any(.figures[]; .used + .reserved >= .limit)) | .budget'`

// options are the command's flags.
type options struct {
	kube            kube.Flags
	all             bool
	output          cli.Output
	systemNamespace string
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "quota [-n NAMESPACE | -A]",
		Short:   "Show quota usage, and the pods that hold the most",
		Long:    long,
		Example: example,
		Args:    cli.NoArguments,
		PreRunE: func(*cobra.Command, []string) error { return o.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	o.kube.Register(flags)
	o.kube.RegisterNamespace(flags, "to show (default: the context's, else \"default\")")
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "show every budget of the cluster")
	cli.SystemNamespaceFlag(flags, &o.systemNamespace)
	o.output.Register(flags, cli.YAML, cli.Name, cli.JSONPath)
	o.kube.CompleteNamespaces(cmd, s)
	return cmd
}

func (o *options) check() error {
	if o.all && o.kube.Namespace != "" {
		return errors.New("-n names one namespace, and -A means all: leave out one of them")
	}
	return o.output.Check()
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	quiet := s
	quiet.Err = io.Discard // the dry-run that asks is answered with warnings too
	connection, err := o.kube.Connect(quiet)
	if err != nil {
		return err
	}
	all, err := o.read(ctx, connection)
	if err != nil {
		return err
	}
	var names []string
	for _, b := range all {
		names = append(names, b.Budget)
	}
	return o.output.Print(s.Out, cli.Answer{Document: cli.NewList("QuotaList", all), Names: names,
		Page: func() *cli.Page { return &pageOf(all, s.Painter()).Page }})
}

// read reads the ledgers, or asks the webhook if they may not be read.
func (o *options) read(ctx context.Context, c *kube.Connection) ([]Budget, error) {
	namespace := c.Namespace
	if o.all {
		namespace = ""
	}
	all, err := readBudgets(ctx, cluster{c.Client, o.systemNamespace}, namespace)
	switch {
	case !apierrors.IsForbidden(err):
		return all, err
	case o.all:
		return nil, fmt.Errorf("%w; ask for one of your namespaces: gpuslice quota -n NAMESPACE", err)
	}
	one, err := ask(ctx, c.Client, namespace)
	return []Budget{one}, err
}
