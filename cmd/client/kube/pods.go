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

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

// podsPerPage is how many pods are read at once.
const podsPerPage = 500

// PodFlags are the flags of a command about the slices of pods that have neither succeeded nor failed.
type PodFlags struct {
	Flags
	All            bool
	Selector, Node string
	// In is the namespace of the pods once they are connected; "": all.
	In string

	command string
	pods    typedcorev1.PodInterface
}

// Register registers the flags. verb is the command's action on slices, such as "list".
func (f *PodFlags) Register(cmd *cobra.Command, s cli.Streams, verb string) {
	f.command = cmd.Name()
	flags := cmd.Flags()
	cli.AllNamespacesFlag(cmd, &f.All, verb+" the slices of every namespace")
	flags.StringVarP(&f.Selector, "selector", "l", "", "label `SELECTOR` of the pods: KEY=VALUE, KEY!=VALUE, KEY in (A,B); comma-separated")
	flags.StringVar(&f.Node, "node", "", "only the slices on this `NODE`")
	f.RegisterInstalled(cmd, s, "to "+verb+` (default: with --node all, else the context's, else "default")`)
}

// Check returns errors of the flags.
func (f *PodFlags) Check() error {
	if _, err := labels.Parse(f.Selector); err != nil {
		return fmt.Errorf("-l %q: %w", f.Selector, err)
	}
	f.All = f.All || f.Node != "" && f.Namespace == ""
	return nil
}

// Connect finds the cluster whose pods are read.
func (f *PodFlags) Connect(s cli.Streams) (*Connection, error) {
	c, err := f.Flags.Connect(s)
	if err != nil {
		return nil, err
	}
	if f.In = c.Namespace; f.All {
		f.In = metav1.NamespaceAll
	}
	f.pods = c.Client.CoreV1().Pods(f.In)
	return c, nil
}

func (f *PodFlags) options() metav1.ListOptions {
	fields := "status.phase!=Succeeded,status.phase!=Failed"
	if f.Node != "" {
		fields += ",spec.nodeName=" + f.Node
	}
	return metav1.ListOptions{LabelSelector: f.Selector, FieldSelector: fields}
}

// Each calls use for every pod, and returns the version of the cluster that was read.
func (f *PodFlags) Each(ctx context.Context, use func(*corev1.Pod)) (version string, err error) {
	if version, err = EachPod(ctx, f.pods, f.options(), use); err != nil {
		return "", f.forbidden(fmt.Errorf("list pods: %w", err))
	}
	return version, nil
}

// EachPod calls use for every pod, page by page, and returns the version of the cluster that was read.
func EachPod(ctx context.Context, pods typedcorev1.PodInterface, options metav1.ListOptions,
	use func(*corev1.Pod)) (version string, err error) {
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
func (f *PodFlags) Watch(ctx context.Context, version string) (watch.Interface, error) {
	options := f.options()
	options.ResourceVersion = version
	w, err := f.pods.Watch(ctx, options)
	if err != nil {
		return nil, f.forbidden(fmt.Errorf("watch pods: %w", err))
	}
	return w, nil
}

// forbidden adds the way for a tenant who may not read all namespaces.
func (f *PodFlags) forbidden(err error) error {
	if apierrors.IsForbidden(err) && f.All {
		return fmt.Errorf("%w; %s one of your namespaces: gpuslice %s -n NAMESPACE", err, f.command, f.command)
	}
	return err
}

// Nothing is kubectl's sentence about an empty list.
func (f *PodFlags) Nothing() string {
	text := "No slices found"
	if f.Node != "" {
		text += " on node " + f.Node
	}
	if f.In != metav1.NamespaceAll {
		text += " in " + f.In + " namespace"
	}
	return text + "."
}
