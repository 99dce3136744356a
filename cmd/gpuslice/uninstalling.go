package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/kube"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/uninstall"
	"github.com/gpuslice/gpuslice/policies/api"
)

const uninstallLong = `Remove gpuslice from a cluster: webhook configurations and admission policies first, then the webhook, its rights, its
state, ledgers and Secrets, and its namespace. Nothing can stop it: the API server asks no webhook about webhook
configurations. Asking again goes on where it stopped.

What is removed carries the label app.kubernetes.io/name: gpuslice, or a name that gpuslice gives what it makes. The
namespace goes only where it carries that label. Pods that run keep their slice and their guard.

Progress goes to standard output. On a terminal it asks before it begins; elsewhere --yes says so.

Exit codes: 0 nothing is left, 3 something could not be removed, 2 bad usage or no cluster, 1 internal error.`

const uninstallExample = `  # what would go
  gpuslice uninstall --dry-run

  # everything but the policies, to install again
  gpuslice uninstall --keep-policies --yes`

// uninstallFlags say what to remove, and from where.
type uninstallFlags struct {
	kube                      kube.Flags
	systemNamespace           string
	keepPolicies, dryRun, yes bool
}

func newUninstallCommand(s streams) *cobra.Command {
	var f uninstallFlags
	cmd := &cobra.Command{
		Use:     "uninstall",
		Short:   "Remove gpuslice from a cluster, whatever state it is in",
		Long:    uninstallLong,
		Example: uninstallExample,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	f.kube.Register(flags)
	flags.StringVar(&f.systemNamespace, "system-namespace", api.SystemNamespace, "`NAMESPACE` of the installation")
	flags.BoolVar(&f.keepPolicies, "keep-policies", false, "leave the policies, and the namespace that holds them")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be removed, and remove nothing")
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

func (f *uninstallFlags) run(ctx context.Context, s streams) error {
	connection, err := f.kube.Connect(buildVersion(), s.err)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(connection.Config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", connection.Config.Host, err)
	}
	options := uninstall.Options{Client: client, System: f.systemNamespace, KeepPolicies: f.keepPolicies, DryRun: f.dryRun, Out: s.out}
	plan, err := uninstall.Find(ctx, options)
	if err != nil {
		return err
	}
	if plan.Empty() {
		fmt.Fprintf(s.out, "nothing of gpuslice is left in %s\n", connection.Config.Host)
		return nil
	}
	if !f.dryRun && !f.yes {
		if err := confirm(s, plan, connection.Config.Host); err != nil {
			return err
		}
	}
	failed := uninstall.Carry(ctx, plan, options)
	for _, line := range plan.Remains() {
		fmt.Fprintln(s.out, line)
	}
	if len(failed) > 0 {
		fmt.Fprintf(s.err, "%d objects could not be removed; ask again, or see deploy/EMERGENCY.md\n", len(failed))
		return exitError(exitRefused)
	}
	return nil
}

// errNotAsked says that there is nobody to ask.
var errNotAsked = errors.New("this is no terminal: say --yes to remove gpuslice, or --dry-run to see what would go")

// confirm asks whoever sits at the terminal.
func confirm(s streams, plan *uninstall.Plan, host string) error {
	if !terminal(s.in) {
		return errNotAsked
	}
	fmt.Fprintf(s.err, "%d objects of gpuslice go from %s. Remove them? [y/N] ", len(plan.Items), host)
	answer, err := bufio.NewReader(s.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was removed")
	}
	return nil
}
