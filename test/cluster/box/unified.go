package box

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// makeUnifiedGroup makes a group in the one hierarchy of cgroup v2, with the controllers that the kubelet
// wants. They are handed down by the parent, which may deny: inside a container that has processes in
// its root group.
func makeUnifiedGroup(h hierarchy, group string) error {
	if err := handDown(h.path); err != nil {
		return err
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read controllers: %w", err)
	}
	for _, c := range needed() {
		if !slices.Contains(strings.Fields(string(text)), c) {
			return fmt.Errorf("cgroup v2 at %s does not hand down the controller %s", h.path, c)
		}
	}
	return nil
}

// handDown lets the groups below group use the controllers that a node needs and that it has.
func handDown(group string) error {
	has, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read controllers: %w", err)
	}
	given, err := os.ReadFile(filepath.Join(group, "cgroup.subtree_control"))
	if err != nil {
		return fmt.Errorf("read controllers handed down: %w", err)
	}
	for _, c := range append(needed(), "io", "hugetlb") {
		if slices.Contains(strings.Fields(string(given)), c) || !slices.Contains(strings.Fields(string(has)), c) {
			continue
		}
		if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
			return fmt.Errorf("hand down controller %s: %w", c, err)
		}
	}
	return nil
}

// mountGroups mounts the cgroup file systems afresh, so that the box's own groups look like their roots.
func mountGroups() error {
	list, err := hierarchies()
	if err != nil {
		return err
	}
	if err := unix.Unmount(groupRoot, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", groupRoot, err)
	}
	if list[0].v2() {
		return mountUnified()
	}
	if err := unix.Mount("tmpfs", groupRoot, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", groupRoot, err)
	}
	for _, h := range list {
		if err := os.Mkdir(h.path, 0o755); err != nil {
			return fmt.Errorf("make mount point: %w", err)
		}
		if err := unix.Mount("cgroup", h.path, "cgroup", 0, strings.Join(h.options, ",")); err != nil {
			return fmt.Errorf("mount %s: %w", h.path, err)
		}
		if err := linkControllers(h); err != nil {
			return err
		}
	}
	return nil
}

// linkControllers makes each controller of a shared hierarchy ("cpu,cpuacct") findable by its own name.
func linkControllers(h hierarchy) error {
	for _, c := range h.options {
		link := filepath.Join(groupRoot, c)
		if len(h.options) == 1 || link == h.path {
			continue
		}
		if err := os.Symlink(filepath.Base(h.path), link); err != nil {
			return fmt.Errorf("name controller %s: %w", c, err)
		}
	}
	return nil
}

// mountUnified mounts the one hierarchy of cgroup v2 and moves this process into a leaf of it: a group that
// passes controllers down may hold no process.
func mountUnified() error {
	if err := unix.Mount("cgroup2", groupRoot, "cgroup2", 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", groupRoot, err)
	}
	leaf := filepath.Join(groupRoot, "box")
	if err := os.Mkdir(leaf, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return fmt.Errorf("move to cgroup: %w", err)
	}
	return handDown(groupRoot)
}
