package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/gpuslice/gpuslice/test/cluster/box"
)

// StartDRA runs the driver of dynamic resource allocation (modules/dra), whose flags describe its devices. The programs
// of the box have to include it (AddPrograms). Its log is called by name.
func (n *Node) StartDRA(name string, flags ...string) (*Plugin, error) {
	flags = append([]string{"--node-name=" + box.NodeName, "--kubeconfig=" + n.Kubeconfig}, flags...)
	return n.startPlugin(name, exec.Command(n.bin["dra"], flags...))
}

// StartNVIDIADRA runs NVIDIA's driver of dynamic resource allocation on the node's simulated GPU, with variables in the form NAME=VALUE
// and further flags. The programs of the box have to include it (AddPrograms).
func (n *Node) StartNVIDIADRA(env []string, flags ...string) (*Plugin, error) {
	root, err := n.driverRoot()
	if err != nil {
		return nil, err
	}
	// The driver does not start without this program, which it runs only where a claim has a configuration.
	const program = "usr/bin/nvidia-smi"
	if err := os.MkdirAll(filepath.Join(root, filepath.Dir(program)), 0o755); err != nil {
		return nil, fmt.Errorf("make folder of driver's programs: %w", err)
	}
	if err := os.WriteFile(filepath.Join(root, program), nil, 0o755); err != nil {
		return nil, fmt.Errorf("place driver's program: %w", err)
	}
	flags = append([]string{
		"--node-name=" + box.NodeName, "--kubeconfig=" + n.Kubeconfig, "--image-name=none", "--cdi-root=" + filepath.Dir(cdiSpec),
		"--nvidia-driver-root=" + root, "--container-driver-root=" + root, "--nvidia-cdi-hook-path=" + n.bin["nvidia-cdi-hook"],
	}, flags...)
	cmd := exec.Command(n.bin["nvidia-dra-driver"], flags...)
	cmd.Env = slices.Concat(os.Environ(), n.gpu.Env, env)
	return n.startPlugin("nvidia-dra-driver", cmd)
}
