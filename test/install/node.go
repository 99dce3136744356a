package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/image"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// SharedResource is the resource name of the node's GPU.
const SharedResource = "nvidia.com/gpu.shared"

// replicas of each device of the node.
const replicas = 4

// Sharing is how the node's GPUs are shared by time-slicing.
type Sharing struct {
	GPU      fakegpu.Config
	Replicas int
	Several  bool // a container may request several replicas
	Silent   bool // feature discovery does not run: the labels stay as they are
}

// config is the configuration of NVIDIA's device plugin.
func (s Sharing) config() string {
	return fmt.Sprintf(`version: v1
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: %t
    resources: [{name: nvidia.com/gpu, replicas: %d}]
`, !s.Several, s.Replicas)
}

// OnNode is gpuslice on a node, as users have it: the Deployment's pods answer, and NVIDIA's own device plugin and
// feature discovery offer the GPU.
type OnNode struct {
	*cluster.Node
	Apply *Applier

	open      bool // see StartOpenNode
	plugin    *cluster.Plugin
	documents documents
}

// StartNode starts a node from what Build left in dir, with devices GPUs of 80 GiB in four replicas each, further images,
// and gpuslice on it. It must be called in a box (see package cluster).
func StartNode(ctx context.Context, dir string, devices int, further ...image.Image) (*OnNode, error) {
	n, err := StartBareNode(ctx, dir, devices, further...)
	if err != nil {
		return nil, err
	}
	if err := n.manifests(ctx); err != nil {
		return nil, err
	}
	return n, n.AwaitWebhook(ctx)
}

// StartCDINode is StartNode on a node whose containers get the one GPU by CDI alone, and where no runtime of NVIDIA's is the default.
func StartCDINode(ctx context.Context, dir string) (*OnNode, error) {
	options, err := nodeOptions(dir)
	if err != nil {
		return nil, err
	}
	options.GPU.CDI = true
	n, err := startNode(ctx, options, 1)
	if err != nil {
		return nil, err
	}
	if err := n.WriteCDI(ctx); err != nil {
		return nil, err
	}
	if err := n.manifests(ctx); err != nil {
		return nil, err
	}
	return n, n.AwaitWebhook(ctx)
}

// everyNamespace is the folder of the GPUs that all namespaces of StartOpenNode share.
const everyNamespace = "every-namespace"

// StartOpenNode is StartBareNode as a cluster of its own, for people: all namespaces have the same GPUs, and every image that the
// node lacks is one that holds memory of a GPU (see standin).
func StartOpenNode(ctx context.Context, dir string, devices int) (*OnNode, error) {
	options, err := nodeOptions(dir)
	if err != nil {
		return nil, err
	}
	for i := range options.GPU.Mounts {
		m := &options.GPU.Mounts[i]
		m.Source = strings.ReplaceAll(m.Source, "{namespace}", everyNamespace)
	}
	options.AnyImage = &image.Image{Name: "gpuslice.test/any:v1", Entrypoint: []string{"/standin"},
		Files: map[string]string{"/standin": filepath.Join(dir, standInFile), "/tenant": Tenant(dir)}}
	n, err := startEmptyNode(ctx, options)
	if err != nil {
		return nil, err
	}
	n.open = true
	if err := errors.Join(n.GPU(everyNamespace, fakegpu.Config{Devices: devices}), n.ShareGPU(everyNamespace)); err != nil {
		return nil, err
	}
	return n, n.Offer(ctx, devices)
}

// StartBareNode is StartNode without gpuslice, whose images are there.
func StartBareNode(ctx context.Context, dir string, devices int, further ...image.Image) (*OnNode, error) {
	options, err := nodeOptions(dir)
	if err != nil {
		return nil, err
	}
	options.Images = append(options.Images, further...)
	return startNode(ctx, options, devices)
}

// StartDRANode is StartNode on a node without device plugin and feature discovery: a driver of dynamic resource allocation, started
// with the flags, publishes its devices, and manifests offer them.
func StartDRANode(ctx context.Context, dir string, manifests []byte, flags ...string) (*OnNode, error) {
	return startDRANode(ctx, dir, manifests, func(n *OnNode) (*cluster.Plugin, error) { return n.StartDRA("dra", flags...) })
}

// RestartDRA starts the driver of StartDRANode again, with other flags.
func (n *OnNode) RestartDRA(flags ...string) error {
	n.plugin.Stop()
	var err error
	n.plugin, err = n.StartDRA("dra", flags...)
	return err
}

// StartNVIDIADRANode is StartDRANode with NVIDIA's own driver, which reads the devices of c.
func StartNVIDIADRANode(ctx context.Context, dir string, manifests []byte, c fakegpu.Config, flags ...string) (*OnNode, error) {
	return startDRANode(ctx, dir, manifests, func(n *OnNode) (*cluster.Plugin, error) { return n.startNVIDIADRA(c, flags) })
}

// RestartNVIDIADRA starts NVIDIA's driver again, with other flags.
func (n *OnNode) RestartNVIDIADRA(c fakegpu.Config, flags ...string) error {
	n.plugin.Stop()
	var err error
	n.plugin, err = n.startNVIDIADRA(c, flags)
	return err
}

func (n *OnNode) startNVIDIADRA(c fakegpu.Config, flags []string) (*cluster.Plugin, error) {
	return n.StartNVIDIADRA([]string{fakegpu.ConfigVariable + "=" + c.String()}, flags...)
}

func startDRANode(ctx context.Context, dir string, manifests []byte, driver func(*OnNode) (*cluster.Plugin, error)) (*OnNode, error) {
	options, err := nodeOptions(dir)
	if err != nil {
		return nil, err
	}
	n, err := startEmptyNode(ctx, options)
	if err != nil {
		return nil, err
	}
	if n.plugin, err = driver(n); err != nil {
		return nil, err
	}
	if err := n.Apply.Apply(ctx, manifests); err != nil {
		return nil, err
	}
	if err := n.manifests(ctx); err != nil {
		return nil, err
	}
	return n, n.AwaitWebhook(ctx)
}

func startNode(ctx context.Context, options cluster.NodeOptions, devices int) (*OnNode, error) {
	n, err := startEmptyNode(ctx, options)
	if err != nil {
		return nil, err
	}
	return n, n.Offer(ctx, devices)
}

// startEmptyNode starts a node that offers no GPU.
func startEmptyNode(ctx context.Context, options cluster.NodeOptions) (*OnNode, error) {
	node, err := cluster.StartNode(ctx, options)
	if err != nil {
		return nil, err
	}
	n := &OnNode{Node: node, documents: documents{}}
	n.Apply, err = NewApplier(quiet(node.Config))
	return n, err
}

// Offer makes NVIDIA's device plugin offer so many devices, in place of those it offered before, and labels the node
// with what feature discovery finds.
func (n *OnNode) Offer(ctx context.Context, devices int) error {
	return n.Share(ctx, Sharing{GPU: fakegpu.Config{Devices: devices}, Replicas: replicas})
}

// Share is Offer of GPUs that are shared in another way.
func (n *OnNode) Share(ctx context.Context, s Sharing) error {
	if n.plugin != nil {
		n.plugin.Stop()
		// The node shows for a moment what the plugin offered, which no pod gets any more.
		if err := n.AwaitAllocatable(ctx, SharedResource, 0); err != nil {
			return err
		}
	}
	nvidia := cluster.NVIDIA{Config: s.config(), Env: []string{fakegpu.ConfigVariable + "=" + s.GPU.String()}}
	var err error
	if n.plugin, err = n.StartNVIDIAPlugin(nvidia); err != nil {
		return err
	}
	if !s.Silent {
		if _, err := n.DiscoverFeatures(ctx, nvidia); err != nil {
			return err
		}
	}
	return n.AwaitAllocatable(ctx, SharedResource, int64(s.Replicas*s.GPU.Devices))
}

// manifests applies what users apply, with the images of this build.
func (n *OnNode) manifests(ctx context.Context) error {
	names, err := fs.Glob(deploy.Files, "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(deploy.Files, name)
		if err != nil {
			return err
		}
		if err := n.Apply.Apply(ctx, []byte(strings.ReplaceAll(string(text), ":VERSION", ":"+Tag))); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Policy writes a policy document as a ConfigMap of the system namespace.
func (n *OnNode) Policy(ctx context.Context, name string, document []byte) error {
	return n.documents.write(ctx, n.Client, name, document)
}

// webhookPods are the pods of the Deployment.
func (n *OnNode) webhookPods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := n.Client.CoreV1().Pods(api.SystemNamespace).List(ctx,
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=webhook"})
	if err != nil {
		return nil, fmt.Errorf("list the webhook's pods: %w", err)
	}
	return list.Items, nil
}
