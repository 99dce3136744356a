package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/kube"
)

// Bounds on what the shell waits for, and on what it is given to choose from.
const (
	completionWait = 2 * time.Second
	maxCompletions = 500
)

// completeNames lets the shell complete namespaces, and pods where the command takes one. Without a cluster there is
// nothing to choose from, which is no error.
func completeNames(cmd *cobra.Command, flags *kube.Flags, pods bool) {
	namespaces := func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return names(cmd.Context(), flags, func(ctx context.Context, c *kube.Connection, o metav1.ListOptions) (all []string) {
			list, err := c.Client.CoreV1().Namespaces().List(ctx, o)
			if err != nil {
				return nil
			}
			for _, ns := range list.Items {
				all = append(all, ns.Name)
			}
			return all
		})
	}
	for _, flag := range []string{"namespace", "system-namespace"} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, namespaces) // fails only where it was registered before
		}
	}
	if !pods {
		return
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd.Context(), flags, func(ctx context.Context, c *kube.Connection, o metav1.ListOptions) (all []string) {
			list, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, o)
			if err != nil {
				return nil
			}
			for _, p := range list.Items {
				all = append(all, p.Name)
			}
			return all
		})
	}
}

// names asks a cluster for a bounded list, for a bounded time.
func names(ctx context.Context, flags *kube.Flags, list func(context.Context, *kube.Connection, metav1.ListOptions) []string) ([]string, cobra.ShellCompDirective) {
	connection, err := flags.Connect(buildVersion(), io.Discard)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(ctx, completionWait)
	defer cancel()
	return list(ctx, connection, metav1.ListOptions{Limit: maxCompletions}), cobra.ShellCompDirectiveNoFileComp
}
