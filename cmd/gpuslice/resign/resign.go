// Package resign is the command that signs the promises of living pods again after the keys that signed them were lost,
// so that the pods count as their slices again and not as whole devices.
package resign

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/webhook/admission/pods"
)

const long = `Sign the promises of living pods again after the Secret gpuslice-promise-keys was lost: after gpuslice uninstall --purge, or
after a restore without it. Until then these pods count in quotas as the whole devices that they name.

A pod is signed only if it is as its promise records, under the policy of its namespace. Whether gpuslice made the promise
cannot be known, since the key that signed it is gone: look at the list before you confirm, above all at pods that were
created while gpuslice was not installed. A pod that is not signed gets a slice again when it is created again.

It takes the right to read policies, nodes, namespaces, pods and the Secret, and to impersonate the ServiceAccount of the
webhook, which alone may write signatures. A cluster administrator has these rights. On a terminal it prompts before it begins;
elsewhere it needs --yes.`

const example = `  # which pods would be signed
  gpuslice resign --dry-run

  # after an installation without the keys of the one before
  gpuslice resign --yes`

// options are the command's flags.
type options struct {
	kube        kube.Flags
	dryRun, yes bool
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "resign",
		Short:   "Sign the slices of living pods again after the keys were lost",
		Long:    long,
		Example: example,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "print what would be signed, and sign nothing")
	flags.BoolVar(&o.yes, "yes", false, "do not prompt")
	o.kube.RegisterInstalled(cmd, s, "of the pods (default: all)")
	return cmd
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	connection, err := o.kube.Connect(s)
	if err != nil {
		return err
	}
	found, err := find(ctx, connection.Client, o.kube.System, o.kube.Namespace)
	if err != nil {
		return err
	}
	if err := found.page().Print(s.Out); err != nil {
		return err
	}
	if len(found.signed) == 0 || o.dryRun {
		return found.exit()
	}
	if !o.yes {
		if err := s.Confirm(fmt.Sprintf("sign %d pods?", len(found.signed)), "signed"); err != nil {
			return err
		}
	}
	writer, err := asWebhook(connection.Config, o.kube.System)
	if err != nil {
		return err
	}
	failed := 0
	for _, p := range found.signed {
		if err := p.write(ctx, writer); err != nil {
			failed++
			fmt.Fprintf(s.Err, "pod %s/%s is not signed: %v\n", p.pod.Namespace, p.pod.Name, err)
		}
	}
	fmt.Fprintf(s.Out, "signed %d pods\n", len(found.signed)-failed)
	if failed > 0 {
		return cli.ExitError(cli.ExitNoAnswer)
	}
	return found.exit()
}

// asWebhook is a client that acts as the webhook: nobody else may write signatures.
func asWebhook(config *rest.Config, system string) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + system + ":" + pods.ServiceAccount}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return client, nil
}
