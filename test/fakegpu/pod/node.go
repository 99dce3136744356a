package pod

import (
	"crypto/rand"
	"fmt"
	"strconv"

	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// Node is a node with cgroup v2 whose agent is whoever reads it. Use NewNode.
type Node struct{ pod Pod }

// NewNode lays out a node without pods.
func NewNode(root string) (Node, error) {
	n := Node{Pod{root, rand.Text()}}
	if err := n.pod.own("self", "self"); err != nil {
		return Node{}, err
	}
	return n, n.pod.process(1, "0::/../../../init.scope\n", "")
}

// Root is the folder that stands for /proc.
func (n Node) Root() string { return n.pod.root }

// Name is the name in the words of its tenants, see package fakegpu.
func (n Node) Name() string { return n.pod.node }

// Environment is the agent's further environment.
func (n Node) Environment(c fakegpu.Config) []string { return n.pod.Environment(c) }

// Add puts a process into a container of a pod.
func (n Node) Add(pid int, podUID, containerID string) error {
	return n.pod.lay(strconv.Itoa(pid), strconv.Itoa(pid), fmt.Sprintf("0::/../../pod%s/%s\n", podUID, containerID), "")
}
