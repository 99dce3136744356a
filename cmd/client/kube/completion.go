package kube

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

// Bounds on the shell's wait, and on the number of its choices.
const (
	completionWait = 2 * time.Second
	maxCompletions = 500
)

// CompleteNamespaces lets the shell complete the flags that name a namespace.
func (f *Flags) CompleteNamespaces(cmd *cobra.Command, s cli.Streams) {
	namespaces := completion(f, s, func(c *Connection) List[*corev1.NamespaceList] { return c.Client.CoreV1().Namespaces().List })
	nodes := completion(f, s, func(c *Connection) List[*corev1.NodeList] { return c.Client.CoreV1().Nodes().List })
	for flag, complete := range map[string]cobra.CompletionFunc{"namespace": namespaces,
		"system-namespace": namespaces, "context": f.contexts, "node": nodes} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, complete) // fails only where it was registered before
		}
	}
}

// contexts are the contexts of the kubeconfig.
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
	complete := completion(f, s, func(c *Connection) List[*corev1.PodList] { return c.Client.CoreV1().Pods(c.Namespace).List })
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// completion reads a bounded list of names from a cluster, for a bounded time. Without a cluster, or the right to list,
// there is nothing to choose from, which is no error.
func completion[L runtime.Object](f *Flags, s cli.Streams, list func(*Connection) List[L]) cobra.CompletionFunc {
	s.Err = io.Discard // a warning would be printed into the command line that is being typed
	return func(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		connection, err := f.Connect(s)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionWait)
		defer cancel()
		all, _ := Listed[metav1.Object](list(connection)(ctx, metav1.ListOptions{Limit: maxCompletions}))
		for _, o := range all {
			names = append(names, o.GetName())
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
