package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/kube"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

const bypassLong = `Let every pod of a namespace pass for a while, whatever gpuslice would say to it, also while gpuslice is down. Refusals,
quota and the strict policy of the API server are off together; pods still get slices while gpuslice runs.

It is written on the namespace (label gpuslice.dev/bypass, annotations gpuslice.dev/bypass-until, -reason and -by), so it
takes the right to patch namespaces. It ends by itself, at most 24 hours later; where gpuslice is down then, as soon as it
is back. What pods hold that were made meanwhile counts in their quota.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "BypassList", "items": [...], "errors": []}: an item
has namespace, until, by, reason and overdue. After --end it has no item.

Exit codes: 0 done, 2 bad usage or no cluster, 3 the API server refuses it, 1 internal error.`

const bypassExample = `  gpuslice bypass -n team-a --for 30m --reason "certificate of the webhook is broken"
  gpuslice bypass -n team-a --end
  gpuslice bypass --list`

// bypassFlags say what to do with which namespace.
type bypassFlags struct {
	kube.Flags
	lasting   time.Duration
	reason    string
	end, list bool
	output    string
}

func newBypassCommand(s streams) *cobra.Command {
	var f bypassFlags
	cmd := &cobra.Command{
		Use:     "bypass -n NAMESPACE (--for DURATION --reason TEXT | --end) | --list",
		Short:   "Refuse nothing in a namespace for a while",
		Long:    bypassLong,
		Example: bypassExample,
		Args:    noArguments,
		PreRunE: func(*cobra.Command, []string) error { return f.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	f.Register(flags)
	f.RegisterNamespace(flags, "to bypass; it is never taken from the kubeconfig")
	flags.DurationVar(&f.lasting, "for", 0, "how long: `DURATION` such as 30m, at most 24h")
	flags.StringVar(&f.reason, "reason", "", "`TEXT` for those who meet the bypass")
	flags.BoolVar(&f.end, "end", false, "end the bypass now")
	flags.BoolVar(&f.list, "list", false, "show every bypass of the cluster, or of the namespace")
	flags.StringVarP(&f.output, "output", "o", "text", "`FORMAT`: text, json")
	cmd.MarkFlagsMutuallyExclusive("for", "end", "list")
	cmd.MarkFlagsMutuallyExclusive("reason", "end", "list")
	return cmd
}

const maxReason = 256

func (f *bypassFlags) check() error {
	switch {
	case f.list:
	case f.Namespace == "":
		return errors.New("which namespace? Name it with -n NAMESPACE, or see all with --list")
	case f.end:
	case f.lasting <= 0 || f.lasting > policies.MaxBypass:
		return fmt.Errorf("--for %v: accepted: more than nothing, at most %v, such as --for 30m", f.lasting, policies.MaxBypass)
	case f.reason == "" || len(f.reason) > maxReason:
		return fmt.Errorf("--reason: say why, in at most %d characters, for those who meet the bypass", maxReason)
	}
	return checkOutput(f.output, []string{"text", "json"})
}

func (f *bypassFlags) run(ctx context.Context, s streams) error {
	connection, err := f.Connect(buildVersion(), s.err)
	if err != nil {
		return err
	}
	b := bypasser{client: connection.Client, flags: f, streams: s}
	switch {
	case f.list:
		err = b.list(ctx)
	case f.end:
		err = b.end(ctx)
	default:
		err = b.begin(ctx)
	}
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		fmt.Fprintf(s.err, "gpuslice: %v\n", err)
		return exitError(exitRefused)
	}
	return err
}

// bypasser is one call of the command.
type bypasser struct {
	client  kubernetes.Interface
	flags   *bypassFlags
	streams streams
}

func (b *bypasser) begin(ctx context.Context) error {
	until := time.Now().Add(b.flags.lasting)
	written := policies.Bypass{Until: until, Reason: b.flags.reason, By: b.who(ctx)}
	annotations := map[string]any{}
	for name, value := range written.Annotations() {
		annotations[name] = value
	}
	ns, err := b.patch(ctx, map[string]any{api.LabelBypass: "true"}, annotations)
	if err != nil {
		return err
	}
	if b.flags.output == "json" {
		return b.print(*ns)
	}
	fmt.Fprintf(b.streams.out, `namespace %[1]s is bypassed until %[2]s
off:      refusals and quota of pods, and the strict policy (gpuslice.dev/enforce)
still on: pods that ask for a slice get it while gpuslice runs; what was made meanwhile counts in the quota afterwards
it ends by itself, or now with: gpuslice bypass -n %[1]s --end
`, ns.Name, until.UTC().Format(time.RFC3339))
	return nil
}

// who is the user as the API server knows them; "" where it does not tell.
func (b *bypasser) who(ctx context.Context) string {
	review, err := b.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

func (b *bypasser) end(ctx context.Context) error {
	before, err := b.client.CoreV1().Namespaces().Get(ctx, b.flags.Namespace, metav1.GetOptions{})
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
	case b.flags.output == "json":
		return b.print()
	case bypassed:
		fmt.Fprintf(b.streams.out, "the bypass of namespace %s is over: gpuslice refuses again what breaks its policies\n", before.Name)
	default:
		fmt.Fprintf(b.streams.out, "namespace %s is not bypassed\n", before.Name)
	}
	return nil
}

func (b *bypasser) patch(ctx context.Context, labels, annotations map[string]any) (*corev1.Namespace, error) {
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInternal, err)
	}
	ns, err := b.client.CoreV1().Namespaces().Patch(ctx, b.flags.Namespace, types.MergePatchType, change, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("label namespace %s: %w", b.flags.Namespace, err)
	}
	return ns, nil
}
