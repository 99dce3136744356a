package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/cluster/image"
	"github.com/gpuslice/gpuslice/test/cluster/internal/run"
)

// NodeOptions describe the start. The zero value is enough.
type NodeOptions struct {
	// Images can be used by pods, with imagePullPolicy Never or IfNotPresent: there is no registry.
	Images []image.Image
	// AnyImage, if not nil, is the image for every other name and tag. Its entrypoint runs in place of programs that it
	// lacks, with cmd/nvidia-runtime's description of the container in its environment.
	AnyImage *image.Image
	// GPU is given to containers that request one; nil for a node without.
	GPU *GPU
	// Flags are further arguments of kube-apiserver.
	Flags []string
}

// GPU describes a simulated GPU: the files that NVIDIA's container runtime would hand to a container whose environment
// names devices. The test cluster has a stand-in for that runtime.
type GPU struct {
	// Library is the path of a libnvidia-ml.so.1.
	Library string
	// Mounts are further files and folders of this machine that such a container sees, and the plugin too.
	Mounts []Mount
	// Env are variables, in the form NAME=VALUE, for such containers and the plugin.
	Env []string
	// CDI: runc is the default runtime, and containerd gives the devices that NVIDIA's plugin names by CDI. Mounts and Env reach
	// the plugin alone.
	CDI bool
	// MIGMinors is the text of /proc/driver/nvidia-caps/mig-minors, which NVIDIA's programs read where the
	// library shows MIG instances: lines such as "gpu0/gi7/access 66". "" for a driver without the file.
	MIGMinors string
}

// Mount is a file or folder of this machine in a container. "{namespace}" in Source stands for the namespace of the
// container's pod; a container whose folder is missing does not start. One that is the Driver's comes with a device by CDI.
type Mount struct {
	Source, Destination string
	Writable, Driver    bool
}

// Node is a cluster of one real node, named box.NodeName. It lives as long as the box.
type Node struct {
	*APIServer
	gpu                 *GPU
	anyImage            *image.Image
	kubelet, containerd *run.Process

	mu      sync.Mutex
	plugins []*Plugin // running, and not stopped by us
	started int       // plugins so far
}

// StartNode starts a control plane with controllers and scheduler, containerd and a kubelet in the box that
// this process is in, and returns once the node is ready and pods can be created in the default
// namespace. There can be one in a box.
func StartNode(ctx context.Context, o NodeOptions) (*Node, error) {
	dir := box.Dir()
	if dir == "" {
		return nil, errors.New("start node: this process is not in a box (call cluster.Main or cluster.InBox first)")
	}
	bin, err := readBin(dir)
	if err != nil {
		return nil, err
	}
	n := &Node{APIServer: &APIServer{Dir: dir}, gpu: o.GPU, anyImage: o.AnyImage}
	if err := n.launch(Options{Bin: bin, Flags: o.Flags, layout: boxed()}); err != nil {
		return nil, err
	}
	// The images are unpacked while the API server comes up.
	images := make(chan error, 1)
	go func() { images <- n.startContainerd(ctx, o) }()
	if err := errors.Join(n.awaitReady(ctx), <-images); err != nil {
		return nil, err
	}
	if err := errors.Join(n.startControllerManager(), n.startScheduler(), n.configureKubelet(), n.startKubelet()); err != nil {
		return nil, err
	}
	if err := n.awaitNodeReady(ctx); err != nil {
		return nil, err
	}
	return n, n.DefaultAccount(ctx, "default")
}

// awaitNodeReady returns once the node has the condition Ready.
func (n *Node) awaitNodeReady(ctx context.Context) error {
	return n.await(ctx, "ready node", func(ctx context.Context) bool {
		node, err := n.Client.CoreV1().Nodes().Get(ctx, box.NodeName, metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	})
}

// RestartKubelet kills the kubelet and returns once a new one answers. Pods go on running. Device plugins
// have to register again; NVIDIA's does by itself.
func (n *Node) RestartKubelet(ctx context.Context) error {
	n.kubelet.Kill()
	if err := n.startKubelet(); err != nil {
		return err
	}
	return n.await(ctx, "kubelet", func(ctx context.Context) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:10248/healthz", nil)
		if err != nil {
			return false
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// Label sets labels of the node.
func (n *Node) Label(ctx context.Context, labels map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	if _, err := n.Client.CoreV1().Nodes().Patch(ctx, box.NodeName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("label node: %w", err)
	}
	return nil
}

// AwaitAllocatable returns once the node offers exactly quantity of an extended resource.
func (n *Node) AwaitAllocatable(ctx context.Context, resource string, quantity int64) error {
	return n.await(ctx, fmt.Sprintf("%d %s on the node", quantity, resource), func(ctx context.Context) bool {
		node, err := n.Client.CoreV1().Nodes().Get(ctx, box.NodeName, metav1.GetOptions{})
		if err != nil {
			return false
		}
		got, ok := node.Status.Allocatable[corev1.ResourceName(resource)]
		return ok && got.Value() == quantity
	})
}

// await polls until reached returns true, ctx ends or a part of the cluster does.
func (n *Node) await(ctx context.Context, what string, reached func(context.Context) bool) error {
	poll := time.NewTicker(25 * time.Millisecond)
	defer poll.Stop()
	for !reached(ctx) {
		for _, p := range n.running() {
			if err := p.Failure(); err != nil {
				return fmt.Errorf("wait for %s: %w", what, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s (logs in %s): %w", what, filepath.Join(n.Dir, "*.log"), context.Cause(ctx))
		case <-poll.C:
		}
	}
	return nil
}

// running returns the parts that should not end by themselves.
func (n *Node) running() []*run.Process {
	parts := slices.Clone(n.parts)
	for _, p := range []*run.Process{n.containerd, n.kubelet} {
		if p != nil {
			parts = append(parts, p)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.plugins {
		parts = append(parts, p.process)
	}
	return parts
}
