package pod

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// Pod is one pod with cgroup v2 and private cgroup namespaces. Use New.
type Pod struct{ root, node string }

// New lays out a pod whose pause process is the real PID 1 and whose guard is
// whoever reads it.
func New(root string) (Pod, error) {
	p := Pod{root, rand.Text()}
	if err := p.own("self", "self"); err != nil {
		return Pod{}, err
	}
	for link, target := range map[string]string{"self/ns": "/proc/self/ns", "net": "/proc/self/net"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			return Pod{}, fmt.Errorf("lay out a pod: %w", err)
		}
	}
	return p, p.process(1, "0::/../pause\n", "")
}

// Root is the folder that stands for /proc.
func (p Pod) Root() string { return p.root }

// Node is the node that the words of its tenants must name, see package fakegpu.
func (p Pod) Node() string { return p.node }

// Environment is the guard's further environment, so that the fake library shows it the pod's processes alone, as a PID
// namespace would. The pod stands for the node, whose processes c lists where it lists no others: looking through all
// of the machine's would cost more than the guard does.
func (p Pod) Environment(c fakegpu.Config) []string {
	c.Node = p.node
	if c.PIDs == "" {
		c.PIDs = "node"
	}
	return []string{fakegpu.ConfigVariable + "=" + c.String(), fakegpu.NodeVariable + "=" + p.root}
}

// Add puts a process into a container.
func (p Pod) Add(pid int, container string) error {
	return p.process(pid, "0::/../"+container+"\n", container)
}

// Join puts a process into the guard's own container.
func (p Pod) Join(pid int) error { return p.own(strconv.Itoa(pid), strconv.Itoa(pid)) }

func (p Pod) own(dir, process string) error { return p.lay(dir, process, "0::/\n", "gpuslice-guard") }

func (p Pod) process(pid int, cgroup, container string) error {
	dir := strconv.Itoa(pid)
	return p.lay(dir, dir, cgroup, container)
}

func (p Pod) lay(dir, process, cgroup, container string) error {
	mounts := ""
	if container != "" {
		mounts = "40 31 8:1 /var/lib/kubelet/pods/0aa1/containers/" + container + "/0011aabb /dev/termination-log rw - ext4 /dev/sda1 rw\n"
	}
	// Complete before it is seen: the guard may read at any moment.
	aside := filepath.Join(p.root, ".new-"+dir)
	if err := os.MkdirAll(aside, 0o755); err != nil {
		return fmt.Errorf("lay out a process: %w", err)
	}
	for file, text := range map[string]string{"cgroup": cgroup, "mountinfo": mounts} {
		if err := os.WriteFile(filepath.Join(aside, file), []byte(text), 0o644); err != nil {
			return fmt.Errorf("lay out a process: %w", err)
		}
	}
	for _, file := range []string{"stat", "cmdline"} {
		if err := os.Symlink("/proc/"+process+"/"+file, filepath.Join(aside, file)); err != nil {
			return fmt.Errorf("lay out a process: %w", err)
		}
	}
	if err := os.Rename(aside, filepath.Join(p.root, dir)); err != nil {
		return fmt.Errorf("lay out a process: %w", err)
	}
	return nil
}
