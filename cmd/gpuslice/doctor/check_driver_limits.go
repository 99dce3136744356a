package doctor

import (
	"cmp"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// firstLimits is the first container toolkit that sets the driver's own limit at a container's creation.
var firstLimits = nvidia.Release{1, 20, 1}

// limitsHook is where a container toolkit is deployed that sets the driver's own limit; false if none is known.
func limitsHook(f *Facts) (where, version string, ok bool) {
	is := func(text string) bool {
		r, known := nvidia.ParseRelease(text)
		return known && !r.Before(firstLimits)
	}
	for _, d := range parts(f, nvidia.ContainerToolkit) {
		if image := image(d, "toolkit"); is(image) {
			return daemonSet(d), image, true
		}
	}
	for _, p := range f.ClusterPolicies {
		if is(p.Spec.Toolkit.Version) {
			return clusterPolicy(p), p.Spec.Toolkit.Version, true
		}
	}
	return "", "", false
}

// checkDriverLimits looks for pods that cannot start: the toolkit tries to set the limit that they carry, and the driver
// has none.
func checkDriverLimits(f *Facts) []Finding {
	where, version, ok := limitsHook(f)
	old := driversWithoutLimits(f)
	if !ok || len(old) == 0 {
		return nil
	}
	found := newFinding(Problem,
		"pods that carry %s or %s do not start: the container toolkit sets the driver's limit, which drivers before %d do not have",
		nvidia.VarMemoryLimit, nvidia.VarMemoryRequest, limitsDriver)
	for _, p := range f.LimitedPods {
		if p.Spec.NodeName == "" || old[p.Spec.NodeName] != "" {
			found = found.With(object("pod", p.Namespace, p.Name), "spec.containers[].env", nvidia.VarMemoryLimit)
		}
	}
	remedy := "upgrade the driver to " + strconv.Itoa(limitsDriver) + " or later, with cgroup v2; or remove the variables from the pods"
	if len(found.Evidence) == 0 {
		found = newFinding(Note, "pods that set %s or %s themselves will not start on nodes with a driver before %d",
			nvidia.VarMemoryLimit, nvidia.VarMemoryRequest, limitsDriver)
	}
	found = found.With(where, "version", version)
	for _, n := range f.Nodes {
		if major := old[n.Name]; major != "" {
			found = found.With(object("node", "", n.Name), "metadata.labels["+labelMajor+"]", major)
		}
	}
	return append([]Finding{found.WithRemedy("%s", remedy)}, driverTierNear(f, old)...)
}

// driverTierNear finds nodes that lack only the driver for the tier driver, where the GPU Operator installs it. A release of the
// operator whose own driver is older than its toolkit needs (26.7.1) is such a case.
func driverTierNear(f *Facts, old map[string]string) []Finding {
	found := newFinding(Note, "the tier driver is one value away: the container toolkit sets the driver's own limit, and the driver that the GPU Operator installs has none")
	var policy *pools.ClusterPolicy
	for _, p := range f.ClusterPolicies {
		if installs := p.Spec.Driver.Enabled; installs == nil || *installs {
			policy = p
			found = found.With(clusterPolicy(p), "spec.driver.version", cmp.Or(p.Spec.Driver.Version, "the operator's own"))
		}
	}
	if policy == nil {
		return nil
	}
	installed := false
	for _, n := range f.Nodes {
		if major := old[n.Name]; major != "" && installsDriver(n) {
			found, installed = found.With(object("node", "", n.Name), "metadata.labels["+labelMajor+"]", major), true
		}
	}
	if !installed {
		return nil
	}
	return []Finding{found.WithRemedy(`set the driver to a release of %d on nodes with cgroup v2: kubectl patch clusterpolicy %s --type merge -p '{"spec":{"driver":{"version":"%d.PATCH"}}}'; then declare driverLimits on the pool`,
		limitsDriver, cmp.Or(policy.Metadata.Name, "cluster-policy"), limitsDriver)}
}

// driversWithoutLimits are the driver's major versions on the nodes whose driver has no limits of its own.
func driversWithoutLimits(f *Facts) map[string]string {
	old := map[string]string{}
	for _, n := range gpuNodes(f) {
		text := driverMajor(f, n)
		if major, err := strconv.Atoi(text); err == nil && major < limitsDriver {
			old[n.Name] = text
		}
	}
	return old
}

// driverMajor is the driver's major version on a node: by its labels, else by the version that the GPU Operator
// installs.
func driverMajor(f *Facts, n *corev1.Node) string {
	if text := cmp.Or(n.Labels[labelMajor], n.Labels[labelMajorV0]); text != "" {
		return text
	}
	for _, p := range f.ClusterPolicies {
		if r, ok := nvidia.ParseRelease(p.Spec.Driver.Version); ok {
			return strconv.Itoa(r[0])
		}
	}
	return ""
}
