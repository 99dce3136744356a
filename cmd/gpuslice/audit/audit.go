// Package audit is the command that previews the effect of enforce on a namespace under audit or warn.
package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/cmd/client/preview"
	"github.com/gpuslice/gpuslice/policies/api"
)

const long = `Preview what enforce would change in a namespace under audit or warn, so that a team can be enforced without a surprise:
for its living pods, and for the pods that its Deployments, StatefulSets, DaemonSets, Jobs and CronJobs create. Pods are
evaluated as if they were created again, the oldest first. Quota is counted over all namespaces that share a budget, and a
denied pod takes none of it. Workloads are evaluated as far as their template goes.

--include-enforced evaluates namespaces that are enforced already, too: their pods may have been created before the policy.
--policies evaluates policies that are not applied yet, in the place of the cluster's, and implies it.

It takes the right to read policies, nodes, namespaces, pods, quotas, claims and workloads.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "AuditList", "items": [...], "errors": [...]}. An item
is a namespace: namespace, policy, mode, evaluated, and groups (ifEnforced, rule, reason, count, examples of kind, name and
message). Claims and templates that take GPUs and are no slices are its claims. -o name prints the namespaces.`

const example = `  # may team-a go from audit to enforce?
  gpuslice audit -n team-a

  # what would a policy change that is not applied yet
  gpuslice audit -n team-a --policies team-a.yaml

  # every namespace that is not enforced yet
  gpuslice audit -A -o json | jq '.items[] | {namespace, denied: [.groups[] | select(.ifEnforced == "denied")]}'`

// options are the command's flags.
type options struct {
	clusters.Flags
	all, includeEnforced bool
	output               cli.Output
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	o := options{Flags: clusters.Flags{Needed: true}}
	cmd := &cobra.Command{
		Use:     "audit [-n NAMESPACE | -A] [flags]",
		Short:   "Preview what enforce would change in a namespace",
		Long:    long,
		Example: example,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	o.Flags.Register(cmd, s, "to audit (default: the context's, else \"default\")")
	cli.AllNamespacesFlag(cmd, &o.all, "audit every governed namespace")
	flags.BoolVar(&o.includeEnforced, "include-enforced", false, "audit namespaces that are enforced already, too")
	o.output.Register(cmd, cli.YAML, cli.Name, cli.JSONPath)
	return cmd
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	connection, err := o.Kube.Connect(s)
	if err != nil {
		return err
	}
	c, err := clusters.Load(ctx, &o.Flags, &manifest.Reader{Stdin: s.In}, s)
	if err != nil {
		return err
	}
	scope, err := installed.ReadScope(ctx, connection.Client, o.Kube.System)
	if err != nil {
		fmt.Fprintf(s.Err, "%v: namespaces that an installation leaves out by itself are left out\n", err)
	}
	a := &auditor{scope: scope, client: connection.Client, engine: preview.New(c),
		system: o.Kube.System, enforced: o.includeEnforced || len(o.Policies) > 0}
	names := []string{connection.Namespace}
	if o.all {
		names = slices.Sorted(maps.Keys(c.Labels))
	}
	for _, name := range names {
		reason := a.skip(name)
		if reason == "" {
			err = a.audit(ctx, name)
		} else if !o.all || a.unknown(name) {
			fmt.Fprintf(s.Err, "namespace %s: %s\n", name, reason)
		}
		if err != nil {
			return err
		}
	}
	if o.all && len(a.items)+len(a.errors) == 0 {
		fmt.Fprintln(s.Err, "no namespace to audit: none is governed that is not enforced already; --include-enforced audits those all the same")
	}
	if err := a.addPods(ctx); err != nil {
		return err
	}
	for i := range a.items {
		a.items[i].sort()
	}
	for _, failed := range a.errors {
		fmt.Fprintln(s.Err, failed)
	}
	return a.print(&o.output, s)
}

// inScope reports whether the API server calls the webhook for pods of a namespace.
func (a *auditor) inScope(namespace string) bool {
	return a.scope.Includes(namespace, a.engine.Cluster.Labels[namespace])
}

// unknown reports whether a namespace is not audited because its policy cannot be used.
func (a *auditor) unknown(namespace string) bool {
	return namespace != a.system && a.inScope(namespace) && a.engine.Cluster.Input(namespace).PolicyError != nil
}

// skip is why a namespace is not audited; "": it is.
func (a *auditor) skip(namespace string) string {
	in := a.engine.Cluster.Input(namespace)
	switch {
	case namespace == a.system:
		return "gpuslice's own, which it does not govern"
	case !a.inScope(namespace):
		return "the API server does not call gpuslice for its pods: the webhook configurations leave it out"
	case in.PolicyError != nil:
		return "its policy cannot be used: " + in.PolicyError.Error()
	case in.Policy == nil:
		return "no policy governs it, so nothing is denied or changed there; name a policy with --policies FILE to preview it"
	case in.Policy.Off():
		return "policy " + in.Policy.Name + " is off, so nothing is denied or changed there"
	case !a.enforced && in.Policy.EnforcementMode == api.EnforceFull:
		return "policy " + in.Policy.Name + " is enforced already; --include-enforced audits it all the same"
	}
	return ""
}
