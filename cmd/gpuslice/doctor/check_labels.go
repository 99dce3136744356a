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
const labelGKEAccelerator = "cloud.google.com/gke-accelerator"

// labelsOfEC2 are the prefixes under which Karpenter and EKS Auto Mode write what EC2 knows of an instance type.
var labelsOfEC2 = []string{"karpenter.k8s.aws/", "eks.amazonaws.com/"}

// checkLabels looks for nodes that offer GPUs of which the memory is not known.
func checkLabels(f *Facts) []Finding {
	const unknown = ", so no fraction, no framework's cap and no quota of memory can be set there"
	found := newFinding(Warning, "GPU nodes without the labels of GPU feature discovery: their memory is unknown"+unknown).
		WithRemedy("deploy GPU feature discovery: helm upgrade nvidia-device-plugin nvdp/nvidia-device-plugin --reuse-values --set gfd.enabled=true\n" +
			"or gfd.enabled=true of the GPU Operator's chart; or declare the pool in the default policy, with deviceMemory")
	gke := newFinding(Warning, "GKE's labels show an accelerator of which gpuslice does not know the memory"+unknown).
		WithRemedy("declare the pool in the default policy, with the selector %s and the deviceMemory that nvidia-smi shows: deploy/howto/gke.md", labelGKEAccelerator)
	ec2 := newFinding(Warning, "GPU nodes have EC2's labels and not those of GPU feature discovery: the model is known; not known are how their GPUs are shared, "+
		"the driver, and its count of the memory, which is not EC2's"+unknown)
	selector := ""
	known := f.knownMemory()
	for _, n := range gpuNodes(f) {
		where := object("node", "", n.Name)
		model, told := ec2Model(n)
		switch {
		case n.Labels[labelMemory] != "", known[n.Name], hasHAMiPlugin(n):
		case n.Labels[labelGKEAccelerator] != "":
			gke = gke.With(where, "metadata.labels["+labelGKEAccelerator+"]", n.Labels[labelGKEAccelerator])
		case model != "":
			selector = cmp.Or(selector, model+": "+n.Labels[model])
			ec2 = ec2.With(where, "metadata.labels["+model+"]", told)
		default:
			found = found.With(where, "metadata.labels["+labelMemory+"]", "missing")
		}
	}
	return withEvidence(found, gke, ec2.WithRemedy("deploy GPU feature discovery: helm upgrade --install nvidia-device-plugin nvdp/nvidia-device-plugin --set gfd.enabled=true, "+
		"with devicePlugin.enabled=false where the node's image has a plugin (Bottlerocket, EKS Auto Mode)\n"+
		"or declare the pool in the default policy, with the selector {%s}, resource, strategy, replicas, and the deviceMemory and driver that nvidia-smi shows", selector))
}

// knownMemory are the nodes of pools with a known memory.
func (f *Facts) knownMemory() map[string]bool {
	known := map[string]bool{}
	all := f.snapshot().Pools()
	for i := range all {
		for _, kind := range all[i].Nodes {
			for _, n := range kind.Named {
				known[n.Name] = known[n.Name] || all[i].Usable() > 0
			}
		}
	}
	return known
}

// ec2Model is the label of a node that names its model of GPU as EC2 does, "": none, and what the node's labels show.
func ec2Model(n *corev1.Node) (label, told string) {
	for _, prefix := range labelsOfEC2 {
		label = prefix + "instance-gpu-name"
		if n.Labels[label] == "" {
			continue
		}
		told = fmt.Sprintf("%s, %s of %s MiB", n.Labels[label], cmp.Or(n.Labels[prefix+"instance-gpu-count"], "?"), cmp.Or(n.Labels[prefix+"instance-gpu-memory"], "?"))
		count, err := strconv.ParseInt(n.Labels[prefix+"instance-gpu-count"], 10, 64)
		for _, name := range []corev1.ResourceName{wholeGPU, sharedGPU} {
			if units := n.Status.Allocatable[name]; err == nil && count > 0 && !units.IsZero() {
				told += fmt.Sprintf("; it offers %s of %s", units.String(), name)
				if units.Value() > count {
					told += ": shared, or MIG"
				}
			}
		}
		return label, told
	}
	return "", ""
}

// gpuNodes are the nodes that offer GPUs.
func gpuNodes(f *Facts) []*corev1.Node {
	return slices.DeleteFunc(slices.Clone(f.Nodes), func(n *corev1.Node) bool { return len(f.offered(n)) == 0 })
}
