package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gpuslice/gpuslice/test/cluster/image"
	"github.com/gpuslice/gpuslice/test/cluster/internal/run"
)

// containerdSocket lies in the box's own /run.
const containerdSocket = "/run/containerd/containerd.sock"

// pauseImage is the name of the image that holds a pod's namespaces.
const pauseImage = "gpuslice.test/pause:v1"

// containerdConfig takes the folder of the cluster, the socket, the pause image, the folder of the CNI
// plugins, the default runtime, the paths of runc and of the stand-in for NVIDIA's runtime, and the folder of registries or "".
const containerdConfig = `version = 3
root = "%[1]s/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs", "io.containerd.nri.v1.nri"]
[grpc]
  address = "%[2]s"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "%[8]s"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "%[3]s"
[plugins."io.containerd.cri.v1.runtime"]
  # Without CAP_SYS_RESOURCE a lower score than the parent's may not be set.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["%[4]s"]
    conf_dir = "%[1]s/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "%[5]s"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "%[6]s"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]
        BinaryName = "%[7]s"
`

// networkConfig takes the folder of the cluster.
const networkConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "%s/cni-addresses",
            "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// startContainerd returns once images can be used.
func (n *Node) startContainerd(ctx context.Context, o NodeOptions) error {
	registries := ""
	if o.AnyImage != nil {
		var err error
		if registries, err = n.serveAnyName(*o.AnyImage); err != nil {
			return err
		}
	}
	runtime, err := n.installRuntime()
	if err != nil {
		return err
	}
	standard := "runc"
	if n.gpu != nil && !n.gpu.CDI {
		standard = "nvidia" // as on nodes that NVIDIA's operator set up
	}
	config := filepath.Join(n.Dir, "containerd.toml")
	text := fmt.Sprintf(containerdConfig, n.Dir, containerdSocket, pauseImage,
		filepath.Dir(n.bin["bridge"]), standard, n.bin["runc"], runtime, registries)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return fmt.Errorf("configure containerd: %w", err)
	}
	networks := filepath.Join(n.Dir, "cni")
	if err := os.Mkdir(networks, 0o755); err != nil {
		return fmt.Errorf("make folder of networks: %w", err)
	}
	if err := os.WriteFile(filepath.Join(networks, "pods.conflist"), []byte(fmt.Sprintf(networkConfig, n.Dir)), 0o644); err != nil {
		return fmt.Errorf("configure network of pods: %w", err)
	}
	cmd := exec.Command(n.bin["containerd"], "--config="+config)
	// The shim is looked up by name.
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(n.bin["containerd"])+":"+os.Getenv("PATH"))
	if n.containerd, err = run.Start(n.Dir, "containerd", cmd); err != nil {
		return err
	}
	return n.importImages(ctx, append(o.Images, image.Image{Name: pauseImage, Entrypoint: []string{"/pause"},
		Files: map[string]string{"/pause": n.bin["pause"]}}))
}

// installRuntime copies the stand-in for NVIDIA's runtime beside its settings, and returns its path.
func (n *Node) installRuntime() (string, error) {
	text, err := os.ReadFile(n.bin["nvidia-runtime"])
	if err != nil {
		return "", fmt.Errorf("read runtime: %w", err)
	}
	path := filepath.Join(n.Dir, "nvidia-runtime")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		return "", fmt.Errorf("install runtime: %w", err)
	}
	settings := struct {
		Runtime string
		Mounts  []Mount
		Env     []string
		StandIn string
		Kubectl []string
	}{Runtime: n.bin["runc"]}
	if n.anyImage != nil {
		settings.StandIn, settings.Kubectl = n.anyImage.Entrypoint[0], []string{n.bin["kubectl"], "--kubeconfig=" + n.Kubeconfig}
	}
	if n.gpu != nil {
		settings.Mounts = append([]Mount{{Source: n.gpu.Library, Destination: LibraryPath(), Driver: true}}, n.gpu.Mounts...)
		settings.Env = n.gpu.Env
	}
	encoded, err := json.Marshal(settings)
	if err != nil {
		return "", fmt.Errorf("encode settings of runtime: %w", err)
	}
	if err := os.WriteFile(path+".json", encoded, 0o644); err != nil {
		return "", fmt.Errorf("configure runtime: %w", err)
	}
	return path, nil
}

// importImages packs images and imports them into containerd, waiting until it listens.
func (n *Node) importImages(ctx context.Context, images []image.Image) error {
	err := n.await(ctx, "containerd", func(context.Context) bool {
		conn, err := net.Dial("unix", containerdSocket)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	for _, i := range images {
		if err := n.importImage(ctx, i); err != nil {
			return fmt.Errorf("import image %s: %w", i.Name, err)
		}
	}
	return nil
}

func (n *Node) importImage(ctx context.Context, i image.Image) error {
	packed, w := io.Pipe()
	go func() { w.CloseWithError(i.Write(w)) }()
	defer packed.Close()
	cmd := exec.CommandContext(ctx, n.bin["ctr"], "--address", containerdSocket, "--namespace", "k8s.io", "images", "import", "-")
	cmd.Stdin = packed
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run ctr: %w\n%s", err, out)
	}
	return nil
}
