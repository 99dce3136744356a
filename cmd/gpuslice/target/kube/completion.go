package kube

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
)

// Bounds on the shell's wait, and on the number of its choices.
const (
	completionWait = 2 * time.Second
	maxCompletions = 500
)

// lister lists names in a cluster, as far as they may be read.
type lister func(context.Context, *Connection, metav1.ListOptions) []string

// CompleteNamespaces lets the shell complete the flags that name a namespace.
func (f *Flags) CompleteNamespaces(cmd *cobra.Command, s cli.Streams) {
	complete := f.completion(s, func(ctx context.Context, c *Connection, o metav1.ListOptions) (all []string) {
		list, err := c.Client.CoreV1().Namespaces().List(ctx, o)
		if err != nil {
			return nil
		}
		for _, ns := range list.Items {
			all = append(all, ns.Name)
		}
		return all
	})
	for _, flag := range []string{"namespace", "system-namespace"} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, complete) // fails only where it was registered before
		}
	}
	if cmd.Flags().Lookup("context") != nil {
		_ = cmd.RegisterFlagCompletionFunc("context", f.contexts)
	}
	if cmd.Flags().Lookup("node") != nil {
		_ = cmd.RegisterFlagCompletionFunc("node", f.completion(s, nodes))
	}
}

func nodes(ctx context.Context, c *Connection, o metav1.ListOptions) (all []string) {
	list, err := c.Client.CoreV1().Nodes().List(ctx, o)
	if err != nil {
		return nil
	}
	for _, n := range list.Items {
		all = append(all, n.Name)
	}
	return all
}

// contexts are those of the kubeconfig.
func (f *Flags) contexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	config, err := rules.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// CompletePods lets the shell complete the name of a pod as the first argument.
func (f *Flags) CompletePods(cmd *cobra.Command, s cli.Streams) {
	complete := f.completion(s, func(ctx context.Context, c *Connection, o metav1.ListOptions) (all []string) {
		list, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, o)
		if err != nil {
			return nil
		}
		for _, p := range list.Items {
			all = append(all, p.Name)
		}
		return all
	})
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// completion reads a bounded list from a cluster, for a bounded time. Without a cluster there is nothing to choose
// from, which is no error.
func (f *Flags) completion(s cli.Streams, list lister) cobra.CompletionFunc {
	s.Err = io.Discard // a warning would be printed into the command line that is being typed
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		connection, err := f.Connect(s)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionWait)
		defer cancel()
		return list(ctx, connection, metav1.ListOptions{Limit: maxCompletions}), cobra.ShellCompDirectiveNoFileComp
	}
}
