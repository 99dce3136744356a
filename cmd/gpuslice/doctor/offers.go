package doctor

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// wholeGPU is the only resource that Cluster Autoscaler takes for a GPU (kubernetes/autoscaler #8095).
const wholeGPU corev1.ResourceName = "nvidia.com/gpu"

// offered are the resources of GPUs that a node offers.
func (f *Facts) offered(n *corev1.Node) (names []string) {
	for name, q := range n.Status.Allocatable {
		if !q.IsZero() && f.isGPU(string(name)) {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

// isGPU is pools.IsGPU for resources of NVIDIA.
func (f *Facts) isGPU(name string) bool {
	if pools.IsGPU(name, nil) || !strings.HasPrefix(name, nvidia.ResourcePrefix) {
		return pools.IsGPU(name, nil)
	}
	if f.offers == nil {
		f.offers = append([]pools.Pool{}, f.snapshot().Pools()...)
	}
	return pools.IsGPU(name, f.offers)
}

func offersWholeGPUs(n *corev1.Node) bool { return offers(n, wholeGPU) }

func offers(n *corev1.Node, name corev1.ResourceName) bool {
	amount := n.Status.Allocatable[name]
	return !amount.IsZero()
}

// offersInstances reports whether a node offers MIG instances under names of their own.
func offersInstances(n *corev1.Node) bool {
	for name, amount := range n.Status.Allocatable {
		if strings.HasPrefix(string(name), nvidia.MIGPrefix) && !amount.IsZero() {
			return true
		}
	}
	return false
}

// offersParts reports whether a node offers parts of GPUs.
func offersParts(n *corev1.Node) bool {
	return offers(n, sharedGPU) || offersInstances(n)
}
