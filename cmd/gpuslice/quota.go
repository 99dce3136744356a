package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/kube"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/standing"
	"github.com/gpuslice/gpuslice/policies/api"
)

const quotaLong = `Say how quotas stand: what is held by living pods, what is reserved for pods that were let in and are not listed yet, and
what the limit is, of each budget and each pool or class that it tells apart. Below it the pods that hold the most, by what
they were given.

Whoever may read policies, ledgers and namespaces sees any namespace, and all with -A. Whoever may not asks the webhook about
one, by a dry-run that creates nothing and takes no right but to create pods there. What is held was counted within the last
minute, or within seconds where pods come and go.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "QuotaList", "items": [...], "errors": []}. An item has
budget, namespaces (those that share it, as far as they may be seen), policy, counted (false: the webhook has not counted yet),
figures (quota, namespace, part, dimension, limit, used, reserved; memory in bytes), more and holders (namespace, pod, memory,
slices, gpus, promised).

Exit codes: 0 done, 2 bad usage or no cluster, 3 the namespace's quota cannot be told, 1 internal error.`

const quotaExample = `  # what is left of my team's
  gpuslice quota -n team-a

  # every budget of the cluster
  gpuslice quota -A

  # those that are full
  gpuslice quota -A -o json | jq '.items[] | select(any(.figures[]; .used + .reserved >= .limit)) | .budget'`

// quotaFlags say whose quota is asked for.
type quotaFlags struct {
	kube                    kube.Flags
	all                     bool
	systemNamespace, output string
}

func newQuotaCommand(s streams) *cobra.Command {
	var f quotaFlags
	cmd := &cobra.Command{
		Use:     "quota [-n NAMESPACE | -A]",
		Short:   "Say how quotas stand, and who holds the most",
		Long:    quotaLong,
		Example: quotaExample,
		Args:    noArguments,
		PreRunE: func(*cobra.Command, []string) error { return f.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	f.kube.Register(flags)
	f.kube.RegisterNamespace(flags, "to look at (default: the context's, else \"default\")")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "every budget of the cluster")
	flags.StringVar(&f.systemNamespace, "system-namespace", api.SystemNamespace, "`NAMESPACE` of the installation")
	flags.StringVarP(&f.output, "output", "o", "text", "`FORMAT`: text, json")
	completeNames(cmd, &f.kube, false)
	return cmd
}

func (f *quotaFlags) check() error {
	if f.all && f.kube.Namespace != "" {
		return errors.New("-n names one namespace, and -A means all: leave one of them out")
	}
	return checkOutput(f.output, []string{"text", "json"})
}

func (f *quotaFlags) run(ctx context.Context, s streams) error {
	connection, err := f.kube.Connect(buildVersion(), io.Discard)
	if err != nil {
		return err
	}
	all, err := f.read(ctx, connection)
	switch {
	case errors.Is(err, standing.ErrUnanswered):
		fmt.Fprintf(s.err, "gpuslice: %v\n", err)
		return exitError(exitRefused)
	case err != nil:
		return err
	case f.output == "json":
		return printJSON(s.out, listing[standing.Budget]{APIVersion: outputVersion, Kind: "QuotaList", Items: listOf(all), Errors: []errorPrinted{}})
	}
	paint := func(_ string, text string) string { return text }
	if colourful(s.out, s.getenv) {
		paint = func(colour, text string) string { return colour + text + reset }
	}
	p := page{}
	p.budgets(all, paint)
	return p.print(s.out)
}

// read reads the ledgers, or asks the webhook where they may not be read.
func (f *quotaFlags) read(ctx context.Context, c *kube.Connection) ([]standing.Budget, error) {
	namespace := c.Namespace
	if f.all {
		namespace = ""
	}
	all, err := standing.Read(ctx, c.Client, f.systemNamespace, namespace)
	switch {
	case !apierrors.IsForbidden(err):
		return all, err
	case f.all:
		return nil, fmt.Errorf("%w; ask for one of your namespaces: gpuslice quota -n NAMESPACE", err)
	}
	one, err := standing.Ask(ctx, c.Client, namespace)
	return []standing.Budget{one}, err
}
