package doctor

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/nvidia"
)

// wholeGPU is the only resource that Cluster Autoscaler takes for a GPU (kubernetes/autoscaler #8095).
const wholeGPU corev1.ResourceName = "nvidia.com/gpu"

// offers reports whether a node offers a resource whose name begins so.
func offers(n *corev1.Node, prefix string) bool {
	for name, q := range n.Status.Allocatable {
		if strings.HasPrefix(string(name), prefix) && !q.IsZero() {
			return true
		}
	}
	return false
}

// offersInstance reports whether a node offers MIG instances under names of their own.
func offersInstance(n *corev1.Node) bool { return offers(n, nvidia.ResourcePrefix+"mig-") }

func wholeGPUs(n *corev1.Node) bool {
	q := n.Status.Allocatable[wholeGPU]
	return !q.IsZero()
}
