package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/cgroup"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// Table is the processes of the guard's pod. It is safe for concurrent use.
type Table struct {
	reader
	root        string
	self        int
	ours        string // the guard's own cgroup
	layout      layout
	kubelet     kubeletDir
	init        string // the cgroup of PID 1, the pause process where the namespace is shared
	nameRetry   time.Duration
	cgroupProcs []string // files that list the processes of the guard's own cgroup

	mu         sync.Mutex
	identities map[string]identity  // by the cgroup of the container
	unnamed    map[string]time.Time // when the name of such a container was last looked up
}

// Open returns the processes that are under root, which is "/proc" but in
// tests.
func Open(root string) (*Table, error) { return open(root, files(root)) }

func open(root string, from Source) (*Table, error) {
	t := &Table{reader: newReader(from), root: root, identities: map[string]identity{}, unnamed: map[string]time.Time{}, nameRetry: nameRetry,
		// of cgroup v2, and of a v1 controller
		cgroupProcs: []string{"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/pids/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs"}}
	self, err := readStat(from, "self")
	if err != nil {
		return nil, err
	}
	t.self = self.pid
	if t.ours, err = t.cgroup("self"); err != nil {
		return nil, err
	}
	first, _ := t.cgroup("1")
	t.layout = learnLayout(t.ours, first)
	_, _, t.init = t.locate(1)
	t.learnKubelet()
	return t, nil
}

// learnKubelet reads where the kubelet keeps termination logs from the guard's
// own. Without it no container has a name.
func (t *Table) learnKubelet() {
	id := identity{container: limits.GuardContainer}
	if text, err := t.source.Read("self", "mountinfo"); err == nil {
		if t.kubelet, err = learnKubeletDir(text); err == nil {
			id, _ = t.kubelet.identify(text)
		}
	}
	t.identities[t.ours] = id
}

// SharesPIDs reports whether the pod shares one PID namespace: without it the guard
// sees no process but its own.
func (t *Table) SharesPIDs() bool {
	at, err := t.cgroup("1")
	if err != nil {
		return false
	}
	where, _ := t.layout.locate(at)
	return t.self != 1 && where == sibling
}

// Name implements guard.Namer.
func (t *Table) Name(p guard.Process) guard.Process {
	p.Container, p.Protected = "", true
	s, where, key := t.locate(p.PID)
	if where == elsewhere || s.exited() {
		return p
	}
	p.Start, p.Command = s.start, s.command
	intruder := where == own && !t.guards(s)
	switch id := t.identify(key, s); {
	case intruder:
		p.Container = guard.UnnamedContainer // the pod's, and nobody else's
	case key == t.init: // the runtime's, in no container of the pod
	case id.container == "":
		p.Container = guard.UnnamedContainer
	default:
		p.Container = id.container
	}
	p.Protected = where == own && !intruder || p.PID <= 1 || p.PID == t.self || key == t.init
	return p
}

// Runs reports whether a process of the container with that name lives.
func (t *Table) Runs(container string) bool {
	return slices.ContainsFunc(t.source.PIDs(), func(pid int) bool {
		return t.Name(guard.Process{PID: pid}).Container == container
	})
}

// Cgroup implements guard.Namer: the root of the cgroup tree as the process sees
// it. It can be opened only where the guard may look into the process.
func (t *Table) Cgroup(pid int) string {
	at := filepath.Join(t.root, strconv.Itoa(pid), "root/sys/fs/cgroup")
	if _, err := os.Stat(at); err != nil {
		return ""
	}
	return at
}

// find implements Processes.
func (t *Table) find(pid int) (stat, string) {
	s, where, key := t.locate(pid)
	// PID 1 is the pause process: its end is the pod's.
	if where != sibling || pid <= 1 || pid == t.self {
		return s, ""
	}
	return s, key
}

// locate returns a PID's fields and place. A PID that is not there is elsewhere.
func (t *Table) locate(pid int) (stat, place, string) {
	s, found := t.stat(pid)
	if !found || s.exited() {
		return s, elsewhere, ""
	}
	at, err := t.cgroup(s.dir)
	if err != nil {
		return stat{}, elsewhere, ""
	}
	where, key := t.layout.locate(at)
	return s, where, key
}

func (t *Table) cgroup(dir string) (string, error) {
	text, err := t.source.Read(dir, "cgroup")
	if err != nil {
		return "", err
	}
	at, err := cgroup.Path(text)
	if err != nil {
		return "", fmt.Errorf("read cgroup of %s: %w", dir, err)
	}
	return at, nil
}

// Nested reports whether a process that the order names may live in a PID
// namespace below the pod's: one that cannot be read may.
func (t *Table) Nested(o guard.Order) bool {
	if o.Kind != guard.TerminateContainer {
		s, _, _ := t.locate(o.Process.PID)
		return t.nested(s)
	}
	group, _ := t.cgroupOf(o.Container)
	return slices.ContainsFunc(t.members(group), t.nested)
}

// nested reads the process's numbers in each PID namespace from the pod's on.
func (t *Table) nested(s stat) bool {
	text, err := t.source.Read(s.dir, "status")
	if s.dir == "" || err != nil {
		return true
	}
	for line := range strings.Lines(text) {
		if numbers, found := strings.CutPrefix(line, "NSpid:"); found {
			return len(strings.Fields(numbers)) != 1
		}
	}
	return true
}
