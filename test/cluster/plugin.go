package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuslice/gpuslice/test/cluster/internal/run"
)

// LibraryPath is where a container finds the driver's management library: the folder that Debian's and Ubuntu's dynamic
// loaders look into by default.
func LibraryPath() string {
	folder := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	return "/usr/lib/" + folder + "/libnvidia-ml.so.1"
}

// Plugin is a running device plugin. If it ends by itself, waiting for the node fails with its last words.
type Plugin struct {
	process *run.Process
	node    *Node
}

// startPlugin runs a device plugin and minds it.
func (n *Node) startPlugin(name string, cmd *exec.Cmd) (*Plugin, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.started++
	process, err := run.Start(n.Dir, fmt.Sprintf("%s-%d", name, n.started), cmd)
	if err != nil {
		return nil, err
	}
	p := &Plugin{process: process, node: n}
	n.plugins = append(n.plugins, p)
	return p, nil
}

// Stop ends the plugin. Its resource stays on the node, with nothing allocatable.
func (p *Plugin) Stop() {
	p.node.mu.Lock()
	p.node.plugins = slices.DeleteFunc(p.node.plugins, func(q *Plugin) bool { return q == p })
	p.node.mu.Unlock()
	p.process.Kill()
}

// Log returns the plugin's output so far.
func (p *Plugin) Log() (string, error) {
	text, err := os.ReadFile(p.process.Log)
	if err != nil {
		return "", fmt.Errorf("read log of plugin: %w", err)
	}
	return string(text), nil
}

// NVIDIA describes how to run a program of NVIDIA's.
type NVIDIA struct {
	// Config is the text of the device plugin's configuration file.
	Config string
	// Flags are further arguments.
	Flags []string
	// Env are further variables, in the form NAME=VALUE: a PATH with an MPS control program, say.
	Env []string
}

// StartNVIDIAPlugin runs NVIDIA's device plugin on the node's simulated GPU. Its offer shows on the node a moment later
// (AwaitAllocatable).
func (n *Node) StartNVIDIAPlugin(o NVIDIA) (*Plugin, error) {
	how := []string{"--device-list-strategy=envvar"}
	if n.gpu != nil && n.gpu.CDI {
		root, err := n.driverRoot()
		if err != nil {
			return nil, err
		}
		how = []string{"--device-list-strategy=cdi-cri", "--nvidia-driver-root=" + root, "--container-driver-root=" + root,
			"--nvidia-cdi-hook-path=" + n.bin["nvidia-cdi-hook"]}
	}
	o.Flags = slices.Concat([]string{"--pass-device-specs=false"}, how, o.Flags)
	cmd, err := n.nvidia("nvidia-device-plugin", o)
	if err != nil {
		return nil, err
	}
	return n.startPlugin("nvidia-device-plugin", cmd)
}

// driverVersion is that of the simulated driver, unless its settings say otherwise.
const driverVersion = "580.95.05"

func (n *Node) driverFolder() string { return filepath.Join(n.Dir, "driver-root") }

// driverRoot makes a folder with the files and device nodes of a driver, from which the plugin writes its CDI specification.
func (n *Node) driverRoot() (string, error) {
	root := n.driverFolder()
	libraries := filepath.Join(root, filepath.Dir(LibraryPath()))
	for _, folder := range []string{libraries, filepath.Join(root, "dev")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", fmt.Errorf("make driver's folder: %w", err)
		}
	}
	text, err := os.ReadFile(n.gpu.Library)
	if err != nil {
		return "", fmt.Errorf("read driver's library: %w", err)
	}
	for _, name := range []string{"libnvidia-ml.so.", "libcuda.so."} {
		if err := os.WriteFile(filepath.Join(libraries, name+driverVersion), text, 0o755); err != nil {
			return "", fmt.Errorf("place driver's library: %w", err)
		}
	}
	// NVIDIA's hooks open the library by this name.
	err = os.Symlink("libnvidia-ml.so."+driverVersion, filepath.Join(libraries, "libnvidia-ml.so.1"))
	if err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("name driver's library: %w", err)
	}
	for name, minor := range map[string]uint32{"nvidia0": 0, "nvidiactl": 255} {
		err := unix.Mknod(filepath.Join(root, "dev", name), unix.S_IFCHR|0o666, int(unix.Mkdev(195, minor)))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("make device %s: %w", name, err)
		}
	}
	return root, nil
}

// cdiSpec is the device plugin's file.
const cdiSpec = "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json"

// WriteCDI puts a specification of NVIDIA's own toolkit in the place of the device plugin's, which knows an older one. The
// devices have the same names. The simulated library knows no device nodes: it shows all devices to containers that get one.
func (n *Node) WriteCDI(ctx context.Context) error {
	root := n.driverFolder()
	cmd := exec.CommandContext(ctx, n.bin["nvidia-ctk"], "cdi", "generate", "--mode=nvml", "--driver-root="+root, "--dev-root="+root,
		"--vendor=k8s.device-plugin.nvidia.com", "--class=gpu", "--device-name-strategy=uuid", "--nvidia-cdi-hook-path="+n.bin["nvidia-cdi-hook"],
		"--format=json", "--output="+cdiSpec)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(root, filepath.Dir(LibraryPath())))
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("generate CDI specification: %w\n%s", err, said)
	}
	text, err := os.ReadFile(cdiSpec)
	if err != nil {
		return fmt.Errorf("read CDI specification: %w", err)
	}
	shown := strings.ReplaceAll(string(text), "NVIDIA_VISIBLE_DEVICES=void", `NVIDIA_VISIBLE_DEVICES=void","GPUSLICE_FAKE_GPU_VISIBLE=all`)
	if err := os.WriteFile(cdiSpec, []byte(shown), 0o644); err != nil {
		return fmt.Errorf("write CDI specification: %w", err)
	}
	return nil
}

// DiscoverFeatures runs NVIDIA's GPU feature discovery once on the node's simulated GPU, and gives the
// node the labels that it found, which it returns too.
func (n *Node) DiscoverFeatures(ctx context.Context, o NVIDIA) (map[string]string, error) {
	out := filepath.Join(n.Dir, "features")
	// Newer releases publish by an API of node feature discovery unless they are not to.
	o.Flags = append([]string{"--oneshot", "--no-timestamp", "--use-node-feature-api=false", "--output-file=" + out}, o.Flags...)
	cmd, err := n.nvidia("gpu-feature-discovery", o)
	if err != nil {
		return nil, err
	}
	p, err := run.Start(n.Dir, "gpu-feature-discovery", cmd)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return nil, fmt.Errorf("read features: %w", errors.Join(err, p.Failure()))
	}
	labels := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			labels[name] = value
		}
	}
	return labels, n.Label(ctx, labels)
}

// nvidia prepares one of NVIDIA's programs to run on the simulated GPU.
func (n *Node) nvidia(program string, o NVIDIA) (*exec.Cmd, error) {
	if n.gpu == nil {
		return nil, fmt.Errorf("run %s: the node has no GPU (NodeOptions.GPU)", program)
	}
	folder := filepath.Join(n.Dir, "driver")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make folder of driver: %w", err)
	}
	if err := n.showMIGMinors(); err != nil {
		return nil, err
	}
	// Both look for the library by this name and no other.
	err := os.Symlink(n.gpu.Library, filepath.Join(folder, "libnvidia-ml.so.1"))
	if err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("place driver's library: %w", err)
	}
	file := filepath.Join(n.Dir, program+".yaml")
	if err := os.WriteFile(file, []byte(o.Config), 0o644); err != nil {
		return nil, fmt.Errorf("configure %s: %w", program, err)
	}
	cmd := exec.Command(n.bin[program], append([]string{"--config-file=" + file, "--device-discovery-strategy=nvml"}, o.Flags...)...)
	cmd.Env = slices.Concat(os.Environ(), []string{"LD_LIBRARY_PATH=" + folder}, n.gpu.Env, o.Env)
	return cmd, nil
}

// showMIGMinors puts the driver's list of MIG instances where programs look for it, in the box's own /proc.
func (n *Node) showMIGMinors() error {
	const folder = "/proc/driver/nvidia-caps"
	if n.gpu.MIGMinors == "" {
		return nil
	}
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		if err := unix.Mount("tmpfs", filepath.Dir(folder), "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("hide the machine's drivers: %w", err)
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make folder of MIG instances: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "mig-minors"), []byte(n.gpu.MIGMinors), 0o444); err != nil {
		return fmt.Errorf("list MIG instances: %w", err)
	}
	return nil
}

// StartPlugin runs the device plugin of our own (modules/deviceplugin), whose flags describe its offer. It prints the
// device identities of each allocation, one JSON list a line. Its log is called by name.
func (n *Node) StartPlugin(name string, flags ...string) (*Plugin, error) {
	return n.startPlugin(name, exec.Command(n.bin["deviceplugin"], flags...))
}
