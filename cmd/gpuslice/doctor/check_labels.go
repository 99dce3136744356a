package doctor

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Labels that GPU feature discovery writes.
const (
	labelMemory  = "nvidia.com/gpu.memory"
	labelDriver  = "nvidia.com/cuda.driver-version.full"
	labelMajor   = "nvidia.com/cuda.driver-version.major"
	labelMajorV0 = "nvidia.com/cuda.driver.major"
)

// checkLabels looks for nodes that offer GPUs and do not publish their memory.
func checkLabels(f *Facts) []Finding {
	found := newFinding(Warning, "GPU nodes without the labels of GPU feature discovery: their memory is unknown, so no fraction, no framework's cap and no quota of memory can be set there")
	for _, n := range gpuNodes(f) {
		if n.Labels[labelMemory] == "" {
			found = found.With(object("node", "", n.Name), "metadata.labels["+labelMemory+"]", "missing")
		}
	}
	return withEvidence(
		found.WithRemedy("helm upgrade nvidia-device-plugin nvdp/nvidia-device-plugin --reuse-values --set gfd.enabled=true\n" +
			"or declare the pool in the default policy, with deviceMemory"))
}

// gpuNodes are the nodes that offer GPUs.
func gpuNodes(f *Facts) []*corev1.Node {
	return slices.DeleteFunc(slices.Clone(f.Nodes), func(n *corev1.Node) bool { return len(f.offered(n)) == 0 })
}
