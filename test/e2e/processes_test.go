package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// processes are those of a running container, by their numbers on the node.
func (s *stage) processes(p *corev1.Pod, container string) []int {
	s.Helper()
	_, id, _ := strings.Cut(status(p, container).ContainerID, "://")
	if id == "" {
		s.Fatalf("container %s of %s has no identity", container, p.Name)
	}
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		s.Fatal(err)
	}
	var all []int
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(text), id) {
			continue // one that has gone, or is somebody else's
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, pid)
	}
	if len(all) == 0 {
		s.Fatalf("container %s of %s has no process", container, p.Name)
	}
	return all
}

// cgroupOf is the folder of the memory controller that a process is charged to.
func (s *stage) cgroupOf(pid int) string {
	s.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		s.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case fields[1] == "memory":
			return filepath.Join("/sys/fs/cgroup/memory", fields[2])
		case fields[0] == "0" && fields[1] == "":
			if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
				return filepath.Join("/sys/fs/cgroup", fields[2])
			}
		}
	}
	s.Fatalf("process %d is charged to nobody:\n%s", pid, text)
	return ""
}
