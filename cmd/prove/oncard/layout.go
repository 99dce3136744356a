package oncard

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// layout is a folder in place of a pod's /proc: cgroups and mounts of its processes are invented, since no kubelet made any.
// All else is the kernel's.
type layout string

// newLayout lays out a pod whose guard is whoever reads the folder.
func newLayout() (layout, error) {
	root, err := os.MkdirTemp("", "gpuslice-card")
	if err != nil {
		return "", fmt.Errorf("lay out a pod: %w", err)
	}
	l := layout(root)
	if err := l.put("self", "/", limits.GuardContainer); err != nil {
		return l, err
	}
	for link, target := range map[string]string{"self/ns": "/proc/self/ns", "net": "/proc/self/net"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			return l, fmt.Errorf("lay out a pod: %w", err)
		}
	}
	return l, l.put("1", "/../pause", "")
}

// add puts a process into a container.
func (l layout) add(pid int, container string) error {
	at := "/../" + container
	if container == limits.GuardContainer {
		at = "/"
	}
	return l.put(strconv.Itoa(pid), at, container)
}

func (l layout) put(process, cgroup, container string) error {
	mounts := ""
	if container != "" {
		mounts = "40 31 8:1 /var/lib/kubelet/pods/0aa1/containers/" + container + "/0011aabb /dev/termination-log rw - ext4 /dev/sda1 rw\n"
	}
	aside := filepath.Join(string(l), ".new-"+process) // complete before the guard sees it
	err := os.Mkdir(aside, 0o755)
	for file, text := range map[string]string{"cgroup": "0::" + cgroup + "\n", "mountinfo": mounts} {
		if err == nil {
			err = os.WriteFile(filepath.Join(aside, file), []byte(text), 0o644)
		}
	}
	for _, file := range []string{"stat", "cmdline"} {
		if err == nil {
			err = os.Symlink("/proc/"+process+"/"+file, filepath.Join(aside, file))
		}
	}
	if err == nil {
		err = os.Rename(aside, filepath.Join(string(l), process))
	}
	if err != nil {
		return fmt.Errorf("lay out a process: %w", err)
	}
	return nil
}
