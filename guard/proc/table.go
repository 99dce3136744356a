package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// Table is the processes of the guard's pod. It is safe for concurrent use.
type Table struct {
	root   string
	source source
	self   int
	ours   string // the guard's own cgroup
	pod    string // the pod's UID; empty: unknown
	init   string // the cgroup of PID 1, the pause process where the namespace is shared

	mu         sync.Mutex
	identities map[string]identity // by the cgroup of the container
}

// Open returns the processes that are under root, which is "/proc" but in
// tests.
func Open(root string) (*Table, error) { return open(root, files(root)) }

func open(root string, from source) (*Table, error) {
	t := &Table{root: root, source: from, identities: map[string]identity{}}
	text, err := t.source.read("self", "stat")
	if err != nil {
		return nil, err
	}
	self, err := parseStat(text)
	if err != nil {
		return nil, err
	}
	t.self = self.pid
	if t.ours, err = t.cgroup("self"); err != nil {
		return nil, err
	}
	_, _, t.init = t.find(1)
	t.identities[t.ours] = t.itself()
	t.pod = t.identities[t.ours].podUID
	return t, nil
}

// itself returns the identity of the guard's own container. Where its mounts do
// not name it, the pod's UID is not checked.
func (t *Table) itself() identity {
	text, err := t.source.read("self", "mountinfo")
	if err != nil {
		return identity{container: limits.GuardContainer}
	}
	id, err := parseMounts(text)
	if err != nil {
		return identity{container: limits.GuardContainer}
	}
	return id
}

// Shared reports whether the pod shares one PID namespace: without it the guard
// sees no process but its own.
func (t *Table) Shared() bool {
	at, err := t.cgroup("1")
	if err != nil {
		return false
	}
	where, _ := locate(t.ours, at)
	return t.self != 1 && where == sibling
}

// Own reports whether the PID is a process of the guard's own container.
func (t *Table) Own(pid int) bool {
	at, err := t.cgroup(strconv.Itoa(pid))
	if err != nil {
		return false
	}
	where, _ := locate(t.ours, at)
	return where == own || at == t.ours
}

// Name implements guard.Namer.
func (t *Table) Name(p guard.Process) guard.Process {
	p.Container, p.Protected = "", true
	s, where, key := t.find(p.PID)
	if where == elsewhere || s.exited() {
		return p
	}
	p.Start, p.Command = s.start, s.command
	id := t.identify(key, s)
	p.Container = id.container
	p.Protected = where == own || p.PID <= 1 || p.PID == t.self || key == t.init
	return p
}

// Runs reports whether a process of the container with that name lives.
func (t *Table) Runs(container string) bool {
	return slices.ContainsFunc(t.source.pids(), func(pid int) bool {
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

// find returns what a PID is, and where. A PID that is not there is elsewhere.
func (t *Table) find(pid int) (stat, place, string) {
	dir := strconv.Itoa(pid)
	text, err := t.source.read(dir, "stat")
	if err != nil {
		return stat{}, elsewhere, ""
	}
	s, err := parseStat(text)
	if err != nil || s.pid != pid {
		return stat{}, elsewhere, ""
	}
	at, err := t.cgroup(dir)
	if err != nil {
		return stat{}, elsewhere, ""
	}
	where, key := locate(t.ours, at)
	return s, where, key
}

func (t *Table) cgroup(dir string) (string, error) {
	text, err := t.source.read(dir, "cgroup")
	if err != nil {
		return "", err
	}
	at, err := cgroupPath(text)
	if err != nil {
		return "", fmt.Errorf("read cgroup of %s: %w", dir, err)
	}
	return at, nil
}
