package doctor

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// wholeGPU is the only resource that Cluster Autoscaler takes for a GPU (kubernetes/autoscaler #8095).
const wholeGPU corev1.ResourceName = "nvidia.com/gpu"

// migResources begins the names of MIG instances that have names of their own.
const migResources = nvidia.ResourcePrefix + "mig-"

// offered are the resources of NVIDIA's that a node offers.
func offered(n *corev1.Node) (names []string) {
	for name, q := range n.Status.Allocatable {
		if strings.HasPrefix(string(name), nvidia.ResourcePrefix) && !q.IsZero() {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

func offersWholeGPUs(n *corev1.Node) bool { return slices.Contains(offered(n), string(wholeGPU)) }

// offersInstances reports whether a node offers MIG instances under names of their own.
func offersInstances(n *corev1.Node) bool {
	return slices.ContainsFunc(offered(n), func(name string) bool { return strings.HasPrefix(name, migResources) })
}

// offersParts reports whether a node offers parts of GPUs.
func offersParts(n *corev1.Node) bool {
	return slices.Contains(offered(n), string(sharedGPU)) || offersInstances(n)
}
