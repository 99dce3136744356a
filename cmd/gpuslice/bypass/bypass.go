// Package bypass is the command that lets every pod of a namespace pass for a while.
package bypass

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

const long = `Admit every pod of a namespace for a while, whatever gpuslice would answer, also while gpuslice is down. Denials, quota and
the strict policy of the API server are off together; pods still get slices while gpuslice runs.

The bypass is written on the namespace (label gpuslice.dev/bypass, annotations gpuslice.dev/bypass-until, -reason and -by),
so it takes the right to patch namespaces. It ends by itself, at most 24 hours later; if gpuslice is down then, as soon as
it is back. Pods created meanwhile count in their quota afterwards.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "BypassList", "items": [...], "errors": []}: an item
has namespace, until, by, reason and overdue. After --end it has no item.`

const example = `  gpuslice bypass -n team-a --duration 30m --reason "certificate of the webhook is broken"
  gpuslice bypass -n team-a --end
  gpuslice bypass --list`

// options are the command's flags.
type options struct {
	kube.Flags
	duration  time.Duration
	reason    string
	end, list bool
	output    string
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "bypass -n NAMESPACE (--duration DURATION --reason TEXT | --end) | --list",
		Short:   "Admit every pod of a namespace for a while",
		Long:    long,
		Example: example,
		PreRunE: func(*cobra.Command, []string) error { return o.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	o.Register(flags)
	o.RegisterNamespace(flags, "to bypass; it is never taken from the kubeconfig")
	flags.DurationVar(&o.duration, "duration", 0, "how long: `DURATION` such as 30m, at most 24h")
	flags.StringVar(&o.reason, "reason", "", "`TEXT` for others: why the namespace is bypassed")
	flags.BoolVar(&o.end, "end", false, "end the bypass now")
	flags.BoolVar(&o.list, "list", false, "list every bypass of the cluster, or of the namespace")
	cli.OutputFlag(cmd, &o.output, cli.TextOrDocument())
	cmd.MarkFlagsMutuallyExclusive("duration", "end", "list")
	cmd.MarkFlagsMutuallyExclusive("reason", "end", "list")
	o.CompleteNamespaces(cmd, s)
	return cmd
}

const maxReason = 256

func (o *options) check() error {
	switch {
	case o.list:
	case o.Namespace == "":
		return errors.New("no namespace: name it with -n NAMESPACE, or list all with --list")
	case o.end:
	case o.duration <= 0 || o.duration > policies.MaxBypass:
		return fmt.Errorf("--duration %v: accepted: more than 0, at most %v, such as --duration 30m", o.duration, policies.MaxBypass)
	case o.reason == "" || len(o.reason) > maxReason:
		return fmt.Errorf("--reason %q: accepted: a text of 1 to %d characters, for others", o.reason, maxReason)
	}
	return nil
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	connection, err := o.Connect(s)
	if err != nil {
		return err
	}
	b := bypasser{client: connection.Client, options: o, streams: s}
	switch {
	case o.list:
		return b.list(ctx)
	case o.end:
		return b.end(ctx)
	}
	return b.begin(ctx)
}

// bypasser is one call of the command.
type bypasser struct {
	client  kubernetes.Interface
	options *options
	streams cli.Streams
}

func (b *bypasser) begin(ctx context.Context) error {
	until := time.Now().Add(b.options.duration)
	written := policies.Bypass{Until: until, Reason: b.options.reason, By: b.user(ctx)}
	annotations := map[string]any{}
	for name, value := range written.Annotations() {
		annotations[name] = value
	}
	ns, err := b.patch(ctx, map[string]any{api.LabelBypass: "true"}, annotations)
	if err != nil {
		return err
	}
	if cli.IsDocument(b.options.output) {
		return b.print(*ns)
	}
	fmt.Fprintf(b.streams.Out, `namespace %[1]s is bypassed until %[2]s
off:      denials and quota of pods, and the strict policy (gpuslice.dev/enforce)
still on: pods that request a slice get it while gpuslice runs; pods created meanwhile count in the quota afterwards
it ends by itself, or now with: gpuslice bypass -n %[1]s --end
`, ns.Name, until.UTC().Format(time.RFC3339))
	return nil
}

// user is the user as the API server knows them; "" if it does not answer.
func (b *bypasser) user(ctx context.Context) string {
	review, err := b.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

func (b *bypasser) end(ctx context.Context) error {
	before, err := b.client.CoreV1().Namespaces().Get(ctx, b.options.Namespace, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read namespace: %w", err)
	}
	_, bypassed := policies.BypassOf(before.Labels, nil)
	if bypassed {
		annotations := map[string]any{}
		for name := range (policies.Bypass{}).Annotations() {
			annotations[name] = nil
		}
		if _, err := b.patch(ctx, map[string]any{api.LabelBypass: nil}, annotations); err != nil {
			return err
		}
	}
	switch {
	case cli.IsDocument(b.options.output):
		return b.print()
	case bypassed:
		fmt.Fprintf(b.streams.Out, "the bypass of namespace %s is over: gpuslice denies again what breaks its policies\n", before.Name)
	default:
		fmt.Fprintf(b.streams.Out, "namespace %s is not bypassed\n", before.Name)
	}
	return nil
}

func (b *bypasser) patch(ctx context.Context, labels, annotations map[string]any) (*corev1.Namespace, error) {
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cli.ErrInternal, err)
	}
	ns, err := b.client.CoreV1().Namespaces().Patch(ctx, b.options.Namespace, types.MergePatchType, change, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("label namespace %s: %w", b.options.Namespace, err)
	}
	return ns, nil
}
