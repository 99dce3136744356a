package box

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mounts collects the first error of a series of mounts.
type mounts struct {
	dir string // the box's folder
	err error
}

// setUpMounts gives the box its own /proc, /run, /var/lib, /var/log and cgroup tree.
func setUpMounts(dir string) error {
	m := &mounts{dir: dir}
	m.mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	m.mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	// A pod in a user namespace may mount its /proc only while an unobstructed one can be seen somewhere;
	// the files hidden below would obstruct this one.
	m.mount("proc", m.folder("proc"), "proc", 0, "")
	m.mount("tmpfs", "/run", "tmpfs", 0, "mode=755")
	m.overlay("/var/lib")
	m.bind(m.folder("log"), "/var/log")
	// The kubelet's folder stays off the overlay, which takes no mounts with mapped users (hostUsers: false).
	m.make("/var/lib/kubelet")
	m.bind(m.folder("kubelet"), "/var/lib/kubelet")
	// The kubelet writes these for the whole machine unless they have the values that it wants.
	m.pretend("/proc/sys/vm/overcommit_memory", "1")
	m.pretend("/proc/sys/kernel/panic", "10")
	m.pretend("/proc/sys/kernel/panic_on_oops", "1")
	if m.err == nil {
		m.err = mountGroups()
	}
	return m.err
}

func (m *mounts) mount(source, target, kind string, flags uintptr, data string) {
	if m.err != nil {
		return
	}
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		m.err = fmt.Errorf("mount %s %s: %w", kind, target, err)
	}
}

func (m *mounts) bind(source, target string) { m.mount(source, target, "", unix.MS_BIND, "") }

// overlay makes changes below path go to the box's folder.
func (m *mounts) overlay(path string) {
	name := strings.ReplaceAll(strings.Trim(path, "/"), "/", "-")
	data := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", path, m.folder(name), m.folder(name+"-work"))
	m.mount("overlay", path, "overlay", 0, data)
}

// pretend shows value in the place of a file of the kernel's, and takes writes to it.
func (m *mounts) pretend(path, value string) {
	if m.err != nil {
		return
	}
	file := filepath.Join(m.folder("sys"), filepath.Base(path))
	if m.err = os.WriteFile(file, []byte(value+"\n"), 0o600); m.err == nil {
		m.bind(file, path)
	}
}

// folder makes a folder in the box's folder.
func (m *mounts) folder(name string) string {
	path := filepath.Join(m.dir, name)
	m.make(path)
	return path
}

func (m *mounts) make(path string) {
	if m.err == nil {
		m.err = os.MkdirAll(path, 0o755)
	}
}
