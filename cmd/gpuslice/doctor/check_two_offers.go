package doctor

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/pools"
)

// checkTwoOffers looks for nodes whose GPUs both a device plugin and a driver of dynamic resource allocation give out.
func checkTwoOffers(f *Facts) []Finding {
	found := newFinding(Problem, "a device plugin and a driver of dynamic resource allocation give out GPUs of the same node: each may give a pod what the other has given another").
		WithRemedy("keep one of them off the node: by node selectors, or devicePlugin.enabled=false of the GPU Operator")
	published := map[string]string{}
	for _, s := range f.Slices {
		if s.Spec.Driver == "gpu.nvidia.com" && s.Spec.NodeName != nil && len(s.Spec.Devices) > 0 {
			published[*s.Spec.NodeName] = s.Name
		}
	}
	for _, n := range f.Nodes {
		slice := published[n.Name]
		if resource := pluginResource(n); slice != "" && resource != "" {
			amount := n.Status.Allocatable[resource]
			found = found.With(object("node", "", n.Name), "status.allocatable["+string(resource)+"]", amount.String()).
				With(object("resourceslice", "", slice), "spec.driver", "gpu.nvidia.com")
		}
	}
	return withEvidence(found)
}

// pluginResource is a resource under which a device plugin offers GPUs of the node; "": it offers none.
func pluginResource(n *corev1.Node) corev1.ResourceName {
	for _, name := range slices.Sorted(maps.Keys(n.Status.Allocatable)) {
		if pools.IsGPU(string(name), nil) && offers(n, name) {
			return name
		}
	}
	return ""
}
