package kube

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
)

// podsPerPage is how many pods are read at once.
const podsPerPage = 500

// PodFlags choose pods that have neither succeeded nor failed: -A, -l and --node, beside -n of Flags.
type PodFlags struct {
	All            bool
	Selector, Node string

	pods typedcorev1.PodInterface
}

// Register registers the flags. verb is the command's action on slices, such as "list".
func (f *PodFlags) Register(cmd *cobra.Command, verb string) {
	flags := cmd.Flags()
	cli.AllNamespacesFlag(cmd, &f.All, verb+" the slices of every namespace")
	flags.StringVarP(&f.Selector, "selector", "l", "", "label `SELECTOR` of the pods: KEY=VALUE, KEY!=VALUE, KEY in (A,B); comma-separated")
	flags.StringVar(&f.Node, "node", "", "only the slices on this `NODE`")
}

// Check returns errors of the flags. namespace is that of -n.
func (f *PodFlags) Check(namespace string) error {
	if _, err := labels.Parse(f.Selector); err != nil {
		return fmt.Errorf("-l %q: %w", f.Selector, err)
	}
	f.All = f.All || f.Node != "" && namespace == ""
	return nil
}

// Connect makes the pods those of a cluster.
func (f *PodFlags) Connect(c *Connection) { f.pods = c.Client.CoreV1().Pods(f.namespace(c)) }

func (f *PodFlags) namespace(c *Connection) string {
	if f.All {
		return metav1.NamespaceAll
	}
	return c.Namespace
}

func (f *PodFlags) options() metav1.ListOptions {
	fields := "status.phase!=Succeeded,status.phase!=Failed"
	if f.Node != "" {
		fields += ",spec.nodeName=" + f.Node
	}
	return metav1.ListOptions{LabelSelector: f.Selector, FieldSelector: fields}
}

// Each calls use for every pod, and returns the version of the cluster that was read. command is an alternative for a
// tenant who may not read all namespaces, without -n.
func (f *PodFlags) Each(ctx context.Context, command string, use func(*corev1.Pod)) (version string, err error) {
	if version, err = EachPod(ctx, f.pods, f.options(), use); err != nil {
		return "", f.forbidden(command, fmt.Errorf("list pods: %w", err))
	}
	return version, nil
}

// EachPod calls use for every pod, page by page, and returns the version of the cluster that was read.
func EachPod(ctx context.Context, pods typedcorev1.PodInterface, options metav1.ListOptions, use func(*corev1.Pod)) (version string, err error) {
	options.Limit = podsPerPage
	for {
		page, err := pods.List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			use(&page.Items[i])
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return page.ResourceVersion, nil
		}
	}
}

// Watch follows the pods from a version on.
func (f *PodFlags) Watch(ctx context.Context, command, version string) (watch.Interface, error) {
	options := f.options()
	options.ResourceVersion = version
	w, err := f.pods.Watch(ctx, options)
	if err != nil {
		return nil, f.forbidden(command, fmt.Errorf("watch pods: %w", err))
	}
	return w, nil
}

// forbidden adds the way that needs no right which a tenant lacks.
func (f *PodFlags) forbidden(command string, err error) error {
	if apierrors.IsForbidden(err) && f.All {
		return fmt.Errorf("%w; %s one of your namespaces: gpuslice %s -n NAMESPACE", err, command, command)
	}
	return err
}

// Nothing is kubectl's sentence about an empty list.
func (f *PodFlags) Nothing(c *Connection) string {
	text := "No slices found"
	if f.Node != "" {
		text += " on node " + f.Node
	}
	if namespace := f.namespace(c); namespace != metav1.NamespaceAll {
		text += " in " + namespace + " namespace"
	}
	return text + "."
}
