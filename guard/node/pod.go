package node

import (
	"slices"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/proc"
)

// Pod is a pod of the node that was promised slices.
type Pod struct {
	UID, Namespace, Name string
	// Containers names the containers by their IDs, as the kubelet reports them.
	Containers map[string]string
	Limits     limits.Limits
}

// Pods are the pods of the node, as the API server has them. It is called by
// several goroutines.
type Pods interface {
	// Promised returns the pods whose slices the agent is to enforce.
	Promised() []Pod
	// Promise returns one of them; false: it has no promise by now.
	Promise(uid string) (Pod, bool)
}

// ContainerName returns the name of the container with that ID.
func (p Pod) ContainerName(id string) string { return p.on(nil).ContainerName(id) }

// on returns the pod's processes on a node.
func (p Pod) on(n *proc.Node) proc.Pod {
	return proc.Pod{Node: n, UID: p.UID, Containers: p.Containers}
}

// UsesMPS reports whether the pod is a client of an MPS daemon, so that each of its
// processes may be a client.
func (p Pod) UsesMPS() bool { return p.Limits.ExpectMPS || p.Limits.MPSPipeDirectory != "" }

// Given returns how many devices the pod has at least: containers may share
// them, as an init container's go to those after it.
func (p Pod) Given() (n int) {
	for _, c := range p.Limits.Containers {
		n = max(n, c.GPUs)
	}
	return n
}

// gives reports whether the pod's promise is the same as before.
func (p Pod) gives(before Pod) bool {
	return slices.Equal(p.Limits.Containers, before.Limits.Containers)
}
