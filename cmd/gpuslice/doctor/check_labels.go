package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Labels that GPU feature discovery writes.
const (
	labelMemory  = "nvidia.com/gpu.memory"
	labelDriver  = "nvidia.com/cuda.driver-version.full"
	labelMajor   = "nvidia.com/cuda.driver-version.major"
	labelMajorV0 = "nvidia.com/cuda.driver.major"
)

// Labels of providers, on nodes that have none of GPU feature discovery.
const (
	labelGKEAccelerator = "cloud.google.com/gke-accelerator"
	labelGKENoPlugin    = "gke-no-default-nvidia-gpu-device-plugin" // of node pools with another plugin than GKE's
)

// instanceLabels begin the labels by which Karpenter and EKS Auto Mode show what the provider knows of an instance type.
var instanceLabels = []string{"karpenter.k8s.aws/instance-gpu-", "eks.amazonaws.com/instance-gpu-", "karpenter.azure.com/sku-gpu-"}

// checkLabels looks for nodes that offer GPUs of which the memory is not known.
func checkLabels(f *Facts) []Finding {
	const unknown = ", so no fraction, no framework's cap and no quota of memory can be set there"
	found := newFinding(Warning, "GPU nodes without the labels of GPU feature discovery: their memory is unknown"+unknown).
		WithRemedy("deploy GPU feature discovery: helm upgrade nvidia-device-plugin nvdp/nvidia-device-plugin --reuse-values --set gfd.enabled=true\n" +
			"or gfd.enabled=true of the GPU Operator's chart; or declare the pool in the default policy, with deviceMemory")
	gke := newFinding(Warning, "GKE's labels show an accelerator of which gpuslice does not know the memory"+unknown).
		WithRemedy("declare the pool in the default policy, with the selector %s and the deviceMemory that nvidia-smi shows: deploy/howto/gke.md",
			labelGKEAccelerator)
	instance := newFinding(Warning, "GPU nodes have the labels of an instance type and not those of GPU feature discovery: the model is known; "+
		"not known are how their GPUs are shared, the driver, and its count of the memory, which is not the provider's"+unknown)
	selector := ""
	known, shared := f.knownPools()
	for _, n := range gpuNodes(f) {
		where := object("node", "", n.Name)
		model, shown := instanceModel(n)
		switch {
		case n.Labels[labelMemory] != "", hasHAMiPlugin(n):
		case n.Labels[labelGKENoPlugin] == "true" && !shared[n.Name]:
			found = found.With(where, "metadata.labels["+labelGKENoPlugin+"]", "true")
		case known[n.Name]:
		case n.Labels[labelGKEAccelerator] != "":
			gke = gke.With(where, "metadata.labels["+labelGKEAccelerator+"]", n.Labels[labelGKEAccelerator])
		case model != "" && !shared[n.Name]:
			selector = cmp.Or(selector, model+": "+n.Labels[model])
			instance = instance.With(where, "metadata.labels["+model+"]", shown)
		default:
			found = found.With(where, "metadata.labels["+labelMemory+"]", "missing")
		}
	}
	return withEvidence(found, gke, instance.WithRemedy("deploy GPU feature discovery: "+
		"helm upgrade --install nvidia-device-plugin nvdp/nvidia-device-plugin --set gfd.enabled=true, "+
		"with devicePlugin.enabled=false where the node's image has a plugin (Bottlerocket, EKS Auto Mode)\n"+
		"or declare the pool in the default policy, with the selector {%s}, resource, strategy, replicas, and the deviceMemory and driver that "+
		"nvidia-smi shows", selector))
}

// knownPools are the nodes of pools with a known memory, and those of pools of which it is known how devices are shared.
func (f *Facts) knownPools() (memory, sharing map[string]bool) {
	memory, sharing = map[string]bool{}, map[string]bool{}
	all := f.snapshot().Pools()
	for i := range all {
		for _, kind := range all[i].Nodes {
			for _, n := range kind.Named {
				memory[n.Name] = memory[n.Name] || all[i].DeviceMemory > 0 || all[i].InstanceMemory > 0
				sharing[n.Name] = sharing[n.Name] || all[i].Strategy != ""
			}
		}
	}
	return memory, sharing
}

// instanceModel is the label of a node that shows the model of an instance type's GPUs, "": none, and what its labels show.
func instanceModel(n *corev1.Node) (label, shown string) {
	for _, prefix := range instanceLabels {
		if label = prefix + "name"; n.Labels[label] == "" {
			continue
		}
		shown = n.Labels[label]
		count, err := strconv.ParseInt(n.Labels[prefix+"count"], 10, 64)
		if err != nil || count < 1 {
			return label, shown
		}
		shown += fmt.Sprintf(", count %d", count)
		if memory := n.Labels[prefix+"memory"]; memory != "" {
			shown += ", memory " + memory + " MiB"
		}
		for _, name := range []corev1.ResourceName{wholeGPU, sharedGPU} {
			if units := n.Status.Allocatable[name]; !units.IsZero() {
				shown += fmt.Sprintf("; it offers %s of %s", units.String(), name)
				if units.Value() > count {
					shown += ": shared, or MIG"
				}
			}
		}
		return label, shown
	}
	return "", ""
}

// gpuNodes are the nodes that offer GPUs.
func gpuNodes(f *Facts) []*corev1.Node {
	return slices.DeleteFunc(slices.Clone(f.Nodes), func(n *corev1.Node) bool { return len(f.offered(n)) == 0 })
}
