// Package uninstall is the command that removes an installation of gpuslice so that nothing of it can stand in the way:
// the webhook configurations are removed first, since the API server calls no webhook about these, and everything else
// after that.
//
// Objects are found by the label app.kubernetes.io/name: gpuslice and by the names of gpuslice's own objects. Running
// it twice is the same as running it once.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
)

const long = `Remove gpuslice from a cluster: webhook configurations and admission policies first, then the webhook, its rights, its
state, ledgers and Secrets, and its namespace. Nothing can stop it: the API server calls no webhook about webhook
configurations. Run it again to continue where it stopped.

It removes objects with the label app.kubernetes.io/name: gpuslice, and objects that gpuslice itself creates, by name. The
namespace is removed only if it carries that label. Running pods keep their slice and their guard.

The Secret gpuslice-promise-keys stays, and with it the namespace: with it, an installation after this one knows the slices
of living pods. Without it, each of them counts as the whole devices that it names, until gpuslice resign signs it again.
--purge removes the Secret too.

Where the namespace goes, it waits until it is gone, for --timeout: until then an installation would fail. Progress goes to
standard output. On a terminal it prompts before it begins; elsewhere it needs --yes.`

const example = `  # what would be removed
  gpuslice uninstall --dry-run

  # everything but the policies and the keys, to install again
  gpuslice uninstall --keep-policies --yes

  # everything
  gpuslice uninstall --purge --yes`

// options are the command's flags.
type options struct {
	kube                kube.Flags
	keepPolicies, purge bool
	dryRun, yes         bool
	timeout             time.Duration
}

// Waiting for the namespace.
const (
	defaultTimeout = 5 * time.Minute
	waitInterval   = time.Second
)

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "uninstall",
		Short:   "Remove gpuslice from a cluster, whatever its state",
		Long:    long,
		Example: example,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.keepPolicies, "keep-policies", false, "keep the policies, and the namespace that holds them")
	flags.BoolVar(&o.purge, "purge", false, "remove the keys that sign promises too: only where gpuslice is not installed again")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print what would be removed, and remove nothing")
	flags.BoolVar(&o.yes, "yes", false, "do not prompt")
	flags.DurationVar(&o.timeout, "timeout", defaultTimeout, "how long to wait until the namespace is gone; 0: do not wait")
	o.kube.RegisterInstalled(cmd, s, "")
	return cmd
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	if o.purge && o.keepPolicies {
		return errors.New("--purge removes everything, and --keep-policies keeps policies: leave out one of them")
	}
	connection, err := o.kube.Connect(s)
	if err != nil {
		return err
	}
	r := remover{client: connection.Objects, system: o.kube.System, keep: keep{policies: o.keepPolicies, keys: !o.purge},
		dryRun: o.dryRun, out: s.Out, wait: o.timeout, interval: waitInterval}
	p, err := r.find(ctx)
	if err != nil {
		return err
	}
	if p.empty() {
		fmt.Fprintf(s.Out, "nothing of gpuslice is installed in %s\n", connection)
		return nil
	}
	if !o.dryRun && !o.yes {
		if err := s.Confirm(p.question(connection.String()), "removed"); err != nil {
			return err
		}
	}
	failed := r.carry(ctx, p)
	for _, line := range p.remains() {
		fmt.Fprintln(s.Out, line)
	}
	if len(failed) > 0 {
		fmt.Fprintf(s.Err, "%d objects could not be removed; run it again, or see deploy/EMERGENCY.md\n", len(failed))
		return cli.ExitError(cli.ExitNoAnswer)
	}
	return nil
}

// question lists the objects that are to be removed from a cluster.
func (p *plan) question(cluster string) string {
	text := ""
	for _, i := range p.items {
		text += "  " + i.String() + "\n"
	}
	return text + fmt.Sprintf("remove these %d objects of gpuslice from %s?", len(p.items), cluster)
}
