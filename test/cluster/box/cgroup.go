package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// groupRoot is where every distribution has the cgroup file systems.
const groupRoot = "/sys/fs/cgroup"

// needed returns the controllers without which the kubelet does not start.
func needed() []string { return []string{"cpu", "cpuset", "memory", "pids"} }

// hierarchy is a mounted cgroup file system: one with all controllers (v2), or one for each set (v1).
type hierarchy struct {
	path    string
	options []string // v1: its mount options, controllers or name=...
}

// v2 reports whether this is the unified hierarchy.
func (h hierarchy) v2() bool { return h.options == nil }

// hierarchies returns the hierarchies of this machine below /sys/fs/cgroup.
func hierarchies() ([]hierarchy, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(groupRoot, &st); err != nil {
		return nil, fmt.Errorf("look at %s: %w", groupRoot, err)
	}
	if st.Type == unix.CGROUP2_SUPER_MAGIC {
		return []hierarchy{{path: groupRoot}}, nil
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	list := parseHierarchies(string(text))
	for _, c := range needed() {
		if !slices.ContainsFunc(list, func(h hierarchy) bool { return slices.Contains(h.options, c) }) {
			return nil, fmt.Errorf("no cgroup hierarchy has the controller %s", c)
		}
	}
	return list, nil
}

// parseHierarchies finds the cgroup v1 mounts in the text of /proc/PID/mountinfo.
func parseHierarchies(mountinfo string) []hierarchy {
	var list []hierarchy
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		mount, super := strings.Fields(before), strings.Fields(after)
		if !ok || len(mount) < 5 || len(super) < 3 || super[0] != "cgroup" || filepath.Dir(mount[4]) != groupRoot {
			continue
		}
		var options []string
		for _, o := range strings.Split(super[2], ",") {
			if controller(o) || strings.HasPrefix(o, "name=") {
				options = append(options, o)
			}
		}
		if len(options) > 0 {
			list = append(list, hierarchy{path: mount[4], options: options})
		}
	}
	return list
}

// controller reports whether a mount option of cgroup v1 names a controller, and not a flag.
func controller(option string) bool {
	return slices.Contains([]string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids",
		"net_cls", "net_prio", "perf_event", "hugetlb", "rdma", "misc"}, option)
}

// groupList is the file in the box's folder that names the groups outside of it.
const groupList = "cgroups"

// makeGroups makes an empty group for the box in every hierarchy, named for its folder dir.
func makeGroups(dir string) ([]string, error) {
	list, err := hierarchies()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	var groups []string
	for _, h := range list {
		groups = append(groups, filepath.Join(h.path, filepath.Base(dir)))
	}
	// Noted before they exist, so that whoever sweeps finds all of them.
	if err := os.WriteFile(filepath.Join(dir, groupList), []byte(strings.Join(groups, "\n")), 0o600); err != nil {
		return nil, fmt.Errorf("note cgroups: %w", err)
	}
	for i, h := range list {
		if err := makeGroup(h, groups[i]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
	}
	return groups, nil
}

func makeGroup(h hierarchy, group string) error {
	if h.v2() {
		return makeUnifiedGroup(h, group)
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	if !slices.Contains(h.options, "cpuset") {
		return nil
	}
	// A new cpuset has neither CPUs nor memory and takes no process.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(h.path, file))
		if err != nil {
			return fmt.Errorf("read cpuset: %w", err)
		}
		if err := os.WriteFile(filepath.Join(group, file), value, 0); err != nil {
			return fmt.Errorf("fill cpuset: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(group, "cgroup.clone_children"), []byte("1"), 0); err != nil {
		return fmt.Errorf("let cpusets inherit: %w", err)
	}
	return nil
}

// removeGroups removes the groups of makeGroups for the box with folder dir, with all below. The processes in it may
// take a moment to vanish after their process 1 was killed.
func removeGroups(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, groupList))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find cgroups: %w", err)
	}
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	deadline := time.Now().Add(10 * time.Second)
	for _, group := range strings.Fields(string(text)) {
		for err := removeTree(group); err != nil; err = removeTree(group) {
			if time.Now().After(deadline) {
				return fmt.Errorf("remove cgroup: %w", err)
			}
			<-poll.C
		}
	}
	return nil
}

// removeTree removes a group and those below it, the deepest first.
func removeTree(group string) error {
	var groups []string
	err := filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list cgroups: %w", err)
	}
	for _, g := range slices.Backward(groups) {
		if err := unix.Rmdir(g); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove %s: %w", g, err)
		}
	}
	return nil
}
