package doctor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Releases of the driver on which a tier rests.
const (
	guardDriver  = 565 // a guard in the pod sees its neighbours' PIDs with their memory, from 565.57.01
	limitsDriver = 615 // the driver's own limit for each cgroup
)

// checkDrivers reports which tiers the nodes' drivers allow.
func checkDrivers(f *Facts) []Finding {
	old := newFinding(Warning, "driver before 565.57: a guard in the pod sees no memory that it may act on, so it is not injected there and the guard tier does not hold")
	unknown := newFinding(Note, "nodes without a driver label: whether a guard can act there is seen only when a pod runs")
	fit := newFinding(OK, "driver 565.57 or later: a guard in the pod can hold a slice")
	limits := newFinding(Note, "driver 615 or later: with container toolkit 1.20.1 and cgroup v2 the driver's own limit holds a slice; declare driverLimits on the pool once the toolkit is there")
	before := map[string]bool{}
	for _, n := range gpuNodes(f) {
		text := cmp.Or(n.Labels[labelDriver], n.Labels[labelMajor], n.Labels[labelMajorV0])
		major, err := strconv.Atoi(cmp.Or(n.Labels[labelMajor], n.Labels[labelMajorV0]))
		where, field := object("node", "", n.Name), "metadata.labels["+labelDriver+"]"
		switch {
		case err != nil && n.Labels[labelGKEAccelerator] != "" && n.Labels[labelGKENoPlugin] != "true": // where no guard runs: platform reports it
		case err != nil:
			unknown = unknown.With(where, field, cmp.Or(text, "missing"))
		case major < guardDriver:
			old, before[n.Name] = old.With(where, field, text), true
		case major >= limitsDriver:
			limits = limits.With(where, field, text)
		default:
			fit = fit.With(where, field, text)
		}
	}
	upgraded := slices.DeleteFunc(gpuNodes(f), func(n *corev1.Node) bool { return !before[n.Name] })
	return withEvidence(old.WithRemedy("%s", driverRemedy(f, upgraded)), unknown, limits, fit)
}

// Labels that show who installs a node's driver.
const (
	labelDeployDriver = "nvidia.com/gpu.deploy.driver" // "pre-installed": not the GPU Operator
	labelVGPU         = "nvidia.com/vgpu.present"      // "true": a virtual machine with a part of its host's GPU
	labelVGPUHost     = "nvidia.com/vgpu.host-driver-version"
)

// installsDriver reports whether the GPU Operator may install a node's driver.
func installsDriver(n *corev1.Node) bool {
	return n.Labels[labelDeployDriver] != "pre-installed" && n.Labels[labelVGPU] != "true"
}

// driverRemedy is how the driver of nodes becomes new enough for the guard, by who installs it.
func driverRemedy(f *Facts, nodes []*corev1.Node) string {
	const fit = "565.57.01 or later"
	policy := "cluster-policy"
	for _, p := range f.ClusterPolicies {
		policy = cmp.Or(p.Metadata.Name, policy)
	}
	operator := "upgrade the driver on these nodes to " + fit + "; for instance kubectl patch clusterpolicy " + policy +
		" --type merge -p '{\"spec\":{\"driver\":{\"version\":\"580.95.05\"}}}' with the GPU Operator"
	var all []string
	for _, n := range nodes {
		remedy := operator
		switch {
		case n.Labels[labelVGPU] == "true":
			remedy = "a vGPU guest's driver has to be of a release that the vGPU software of its host supports: upgrade the host to vGPU 18 (570) " +
				"or later, and then the driver in the guest"
			if host := n.Labels[labelVGPUHost]; host != "" {
				remedy += "; the host has " + host
			}
		case !installsDriver(n):
			remedy = "the driver is installed on the node, and the GPU Operator leaves it alone there (" +
				labelDeployDriver + ": pre-installed): upgrade it to " + fit + " in the node's image or by its package manager"
		}
		if !slices.Contains(all, remedy) {
			all = append(all, remedy)
		}
	}
	return strings.Join(all, "\n")
}

// withEvidence are the findings that rest on something.
func withEvidence(all ...Finding) []Finding {
	var out []Finding
	for _, f := range all {
		if len(f.Evidence) > 0 {
			out = append(out, f)
		}
	}
	return out
}
