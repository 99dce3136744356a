package proc

import (
	"errors"
	"os"
	"sync"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/cgroup"
)

// errNotTheNode is returned where the first process is one of a container.
var errNotTheNode = errors.New("the first process is a container's: the agent needs the node's PID namespace (hostPID)")

// errNoClock is returned if the start of processes cannot be computed.
var errNoClock = errors.New("read the time since boot: the kernel does not tell it")

// Node is the processes of a node, for who shares its PID namespace. It is safe
// for concurrent use.
type Node struct {
	reader
	self int

	mu      sync.Mutex
	members map[int]membership // by PID
}

// membership is the container that a process was found in: it cannot leave it.
type membership struct {
	start uint64
	at    cgroup.Member
}

// mostMembers is how many memberships are kept.
const mostMembers = 4096

// OpenNode returns the processes of the node that are under root, "/proc" but in
// tests.
func OpenNode(root string) (*Node, error) { return NewNode(files(root)) }

// NewNode returns the processes of a node. It fails where the reader has a PID
// namespace of its own.
func NewNode(from Source) (*Node, error) {
	n := &Node{reader: newReader(from)}
	self, err := readStat(from, "self")
	if err != nil {
		return nil, err
	}
	n.self = self.pid
	if n.Now() == 0 {
		return nil, errNoClock
	}
	own, err := from.Read("self", "cgroup")
	if err != nil {
		return nil, err
	}
	first, err := from.Read("1", "cgroup")
	if err != nil {
		return nil, err
	}
	if self.pid == 1 || inContainer(first, own) {
		return nil, errNotTheNode
	}
	return n, nil
}

// inContainer reports whether the first process may be one of a container: of a
// pod, of the reader's own, or of one beside that, which a private cgroup
// namespace shows few steps away. Container, pod and kubelet are between a
// container and the node's first process.
func inContainer(first, own string) bool {
	if _, err := cgroup.MemberOf(first); err == nil {
		return true
	}
	at, err := cgroup.Path(first)
	// What cannot be read may be a container's.
	if ours, ownErr := cgroup.Path(own); err != nil || ownErr != nil || at == ours {
		return true
	}
	const leastSteps = 3
	up, _ := steps(at)
	return up > 0 && up < leastSteps
}

// Name fills in a process's fields, but its container, and returns the container
// that it is in: empty, it is in none of a pod, or it cannot be read.
func (n *Node) Name(p guard.Process) (guard.Process, cgroup.Member) {
	s, found := n.stat(p.PID)
	if !found || s.exited() {
		return p, cgroup.Member{}
	}
	p.Start, p.Command, p.Protected = s.start, s.command, n.protects(p.PID)
	m := n.member(s)
	p.Unread = s.unread && m == cgroup.Member{}
	return p, m
}

func (n *Node) protects(pid int) bool { return pid <= 1 || pid == n.self }

// member returns the container of a process; empty: it has none. One that cannot be
// read any more is where it was.
func (n *Node) member(s stat) cgroup.Member {
	m := n.readMember(s)
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.members[s.pid]
	switch {
	case m == cgroup.Member{} && s.unread && known.start == s.start:
		return known.at
	case m == cgroup.Member{}:
		return m
	case len(n.members) >= mostMembers || n.members == nil:
		n.members = map[int]membership{}
	}
	n.members[s.pid] = membership{s.start, m}
	return m
}

func (n *Node) readMember(s stat) cgroup.Member {
	text, err := n.source.Read(s.dir, "cgroup")
	if err != nil {
		return cgroup.Member{}
	}
	m, err := cgroup.MemberOf(text)
	if err != nil {
		return cgroup.Member{}
	}
	return m
}

// Pod is the processes of one pod of a node. It implements Processes. A container
// whose ID is not among its containers is guard.UnnamedContainer.
type Pod struct {
	Node       *Node
	UID        string
	Containers map[string]string // ID -> name, as the kubelet reports them
}

// Name implements Processes.
func (p Pod) Name(process guard.Process) guard.Process {
	process.Container, process.Protected = "", true
	named, m := p.Node.Name(process)
	if m.PodUID != p.UID || m.PodUID == "" {
		return process
	}
	named.Container = p.ContainerName(m.ContainerID)
	return named
}

// ContainerName returns the name of the container with that ID.
func (p Pod) ContainerName(id string) string {
	if name, known := p.Containers[id]; known {
		return name
	}
	return guard.UnnamedContainer
}

func (p Pod) find(pid int) (stat, string) {
	s, found := p.Node.stat(pid)
	if !found || s.exited() || p.Node.protects(pid) {
		return s, ""
	}
	m := p.Node.member(s)
	if m.PodUID != p.UID {
		return s, ""
	}
	return s, m.ContainerID
}

func (p Pod) members(key string) []stat {
	var members []stat
	for _, pid := range p.Node.source.PIDs() {
		if s, at := p.find(pid); at != "" && at == key {
			members = append(members, s)
		}
	}
	return members
}

// Named returns the PIDs of the processes that an order names.
func (p Pod) Named(o guard.Order) []int {
	if o.Kind != guard.TerminateContainer {
		return []int{o.Process.PID}
	}
	key, _ := p.instance(o.Container)
	var pids []int
	for _, s := range p.members(key) {
		pids = append(pids, s.pid)
	}
	return pids
}

// instance returns the container's ID: the kubelet keeps one for a name, and
// lists the running one.
func (p Pod) instance(container string) (key string, able bool) {
	for id, name := range p.Containers {
		if name == container {
			return id, true
		}
	}
	return "", true
}

func (p Pod) lives(pid int, start uint64) bool { return p.Node.lives(pid, start) }

// openTerminationLog implements Processes: the agent may not look into a tenant's
// files.
func (p Pod) openTerminationLog(int) (*os.File, error) { return nil, errNoTerminationLog }
