// Package quota is the command that shows quota usage: read from policies, ledgers and pods by those who may read them,
// or from the webhook, which answers anyone who may create pods.
package quota

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/budget"
	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
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
	kube   kube.Flags
	all    bool
	output cli.Output
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "quota [-n NAMESPACE | -A]",
		Short:   "Show quota usage, and the pods that hold the most",
		Long:    long,
		Example: example,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	cli.AllNamespacesFlag(cmd, &o.all, "show every budget of the cluster")
	o.output.Register(cmd, cli.YAML, cli.Name, cli.JSONPath)
	o.kube.RegisterInstalled(cmd, s, "to show (default: the context's, else \"default\")")
	return cmd
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	quiet := s
	quiet.Err = io.Discard // the dry-run that requests the report is answered with warnings too
	connection, err := o.kube.Connect(quiet)
	if err != nil {
		return err
	}
	all, err := o.read(ctx, connection)
	if err != nil {
		return err
	}
	return o.output.Print(s.Out, cli.Answer{
		Document: cli.NewList("QuotaList", all), Names: cli.Names(all, func(b budget.Budget) string { return b.Budget }),
		Page: func() *cli.Page { return &pageOf(all, s.Painter()).Page },
	})
}

// read reads the ledgers, or the webhook's report if they may not be read.
func (o *options) read(ctx context.Context, c *kube.Connection) ([]budget.Budget, error) {
	namespace := c.Namespace
	if o.all {
		namespace = ""
	}
	all, err := budget.Read(ctx, budget.Cluster{Client: c.Client, System: o.kube.System}, namespace)
	switch {
	case !apierrors.IsForbidden(err):
		return all, err
	case o.all:
		return nil, fmt.Errorf("%w; show one of your namespaces: gpuslice quota -n NAMESPACE", err)
	}
	one, err := ask(ctx, c.Client, namespace)
	return []budget.Budget{one}, err
}

// ask requests the quota of a namespace from the webhook.
func ask(ctx context.Context, client kubernetes.Interface, namespace string) (budget.Budget, error) {
	text, err := installed.Report(ctx, client, namespace, budgets.ReportQuota)
	if err != nil {
		return budget.Budget{}, fmt.Errorf("the quota is unknown: %w", err)
	}
	var report budgets.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return budget.Budget{}, fmt.Errorf("the quota is unknown: read the answer: %w", err)
	}
	pods, err := installed.LivingPods(ctx, client, []string{namespace})
	if err != nil && !apierrors.IsForbidden(err) { // who may not read pods sees none
		return budget.Budget{}, err
	}
	claims, _ := installed.Claims(ctx, client, namespace) // an unreadable claim counts as a GPU
	ofPod := func(pod *corev1.Pod) accounting.PodClaims {
		return claims.GPUClaims(namespace, pod)
	}
	held, unknown := budget.Holders(promise.Keys{}, pods, ofPod)
	return budget.Budget{Budget: report.Budget, Namespaces: []string{namespace}, Policy: report.Policy, Counted: report.Counted,
		Figures: report.Figures, More: report.More, Holders: held, MemoryUnknown: unknown}, nil
}
