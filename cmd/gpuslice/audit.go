package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/config"
)

const auditLong = `Say what enforce would do to what runs in a namespace under audit or warn, so that a team can be adopted without a
surprise: its living pods, and the pods that its Deployments, StatefulSets, DaemonSets, Jobs and CronJobs make. Pods are judged
as if they were created again, the oldest first, quota included; workloads as far as their template goes.

--as enforce looks at every governed namespace, also where enforce holds already: what lives there may have been created
before its policy. --policies judges by policies that are not applied yet, in the place of the cluster's, and implies it.

It takes the right to read policies, nodes, namespaces, pods, quotas and workloads.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "AuditList", "items": [...], "errors": [...]}. An item
is a namespace: namespace, policy, mode, looked, and groups (would, rule, reason, count, examples of kind, name and message).

Exit codes: 0 nothing would be refused, 3 something would be, 2 bad usage or no cluster, 1 internal error.`

const auditExample = `  # may team-a go from audit to enforce?
  gpuslice audit -n team-a

  # what would a policy do that is not applied yet
  gpuslice audit -n team-a --policies team-a.yaml

  # every namespace that is not enforced yet
  gpuslice audit -A -o json | jq '.items[] | {namespace, refused: [.groups[] | select(.would == "refused")]}'`

// auditFlags say what is looked at.
type auditFlags struct {
	clusterFlags
	all        bool
	as, output string
}

func newAuditCommand(s streams) *cobra.Command {
	f := auditFlags{clusterFlags: clusterFlags{needed: true}}
	cmd := &cobra.Command{
		Use:     "audit [-n NAMESPACE | -A] [flags]",
		Short:   "Say what enforce would do to what runs in a namespace",
		Long:    auditLong,
		Example: auditExample,
		Args:    noArguments,
		PreRunE: func(*cobra.Command, []string) error { return f.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	f.clusterFlags.register(flags, "to look at (default: the context's, else \"default\")")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "every governed namespace")
	flags.StringVar(&f.as, "as", "", "enforce: look at namespaces that are enforced already as well")
	flags.StringVarP(&f.output, "output", "o", "text", "`FORMAT`: text, json")
	completeNames(cmd, &f.kube, false)
	return cmd
}

func (f *auditFlags) check() error {
	switch {
	case f.all && f.kube.Namespace != "":
		return errors.New("-n names one namespace, and -A means all: leave one of them out")
	case f.as != "" && f.as != string(config.EnforceFull):
		return fmt.Errorf("--as %q: accepted: %s", f.as, config.EnforceFull)
	}
	return checkOutput(f.output, []string{"text", "json"})
}

func (f *auditFlags) run(ctx context.Context, s streams) error {
	connection, err := f.kube.Connect(buildVersion(), s.err)
	if err != nil {
		return err
	}
	c, err := loadCluster(ctx, &f.clusterFlags, &reader{stdin: s.in}, s.err)
	if err != nil {
		return err
	}
	a := &auditor{client: connection.Client, engine: &engine{cluster: c, decide: policies.Decide}, system: f.systemNamespace}
	names := []string{connection.Namespace}
	if f.all {
		names = slices.Sorted(maps.Keys(c.namespaces))
	}
	wide := f.as != "" || len(f.policies) > 0
	for _, name := range names {
		why := a.left(name, wide)
		if why == "" {
			err = a.audit(ctx, name)
		} else if !f.all {
			fmt.Fprintf(s.err, "namespace %s: %s\n", name, why)
		}
		if err != nil {
			return err
		}
	}
	for _, failed := range a.errors {
		fmt.Fprintln(s.err, failed)
	}
	return a.print(f.output, s)
}

// left says why a namespace is not looked at; "": it is.
func (a *auditor) left(namespace string, wide bool) string {
	in := a.engine.cluster.input(namespace)
	switch {
	case namespace == a.system:
		return "gpuslice's own, which it leaves alone"
	case in.PolicyError != nil:
		return "its policy cannot be used: " + in.PolicyError.Error()
	case in.Policy == nil:
		return "no policy governs it, so nothing is refused or rewritten there; judge it by one with --policies FILE"
	case in.Policy.Mode == config.ModeOff:
		return "policy " + in.Policy.Name + " is off, so nothing is refused or rewritten there"
	case !wide && in.Policy.EnforcementMode == config.EnforceFull:
		return "policy " + in.Policy.Name + " is enforced already; --as enforce judges what lives there all the same"
	}
	return ""
}
