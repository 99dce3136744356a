package doctor

import (
	"regexp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// policyFlag chooses on which GPU of a node NVIDIA's device plugin gives a replica or an instance: distributed, the default, or packed.
// Device plugins before 0.20 have no such flag.
const (
	policyFlag     = "shared-devices-allocation-policy"
	policyVariable = "SHARED_DEVICES_ALLOCATION_POLICY"
)

// checkAllocationPolicy looks for a device plugin that spreads replicas and instances over the GPUs of a node, where there are several.
func checkAllocationPolicy(f *Facts) []Finding {
	found := newFinding(Note,
		"the device plugin spreads replicas and MIG instances over the GPUs of a node: packed, they leave GPUs without pods, which can then be "+
			"divided otherwise. Pods that share a GPU by time-slicing or MPS are slower beside each other; pods on MIG instances are not").
		WithRemedy("set --%s=packed in the device plugin's arguments", policyFlag)
	for _, d := range parts(f, nvidia.DevicePlugin) {
		policy, given := argument(d, policyFlag)
		if !given {
			policy, _, given = variable(d, policyVariable)
		}
		if !given && !hasPolicyFlag(d) {
			continue
		}
		if !given {
			policy, given = configuredPolicy(f)
		}
		if policy == "packed" {
			continue
		}
		if !given {
			policy = "not set: distributed"
		}
		found = found.With(daemonSet(d), "--"+policyFlag, policy)
	}
	if len(found.Evidence) == 0 {
		return nil
	}
	nodes := 0
	for _, n := range f.Nodes {
		count, err := strconv.Atoi(n.Labels["nvidia.com/gpu.count"])
		if err == nil && count > 1 && offersParts(n) {
			found = found.With(object("node", "", n.Name), "metadata.labels[nvidia.com/gpu.count]", strconv.Itoa(count))
			nodes++
		}
	}
	if nodes == 0 {
		return nil
	}
	return []Finding{found}
}

// policyField is policyFlag in a configuration.
const policyField = "sharedDevicesAllocationPolicy"

var policyValue = regexp.MustCompile(`(?m)^[^#\n]*\b` + policyField + `["']?\s*:\s*["']?(\w+)`)

// configuredPolicy is the policy of a configuration: packed where one has it, as which configuration a node has is not looked at.
func configuredPolicy(f *Facts) (policy string, given bool) {
	for _, s := range f.settings(nvidia.IsPluginConfig) {
		if m := policyValue.FindStringSubmatch(s.Text); m != nil && policy != "packed" {
			policy, given = m[1], true
		}
	}
	return policy, given
}

// hasPolicyFlag reports whether the image of a device plugin is one that knows policyFlag.
func hasPolicyFlag(d *appsv1.DaemonSet) bool {
	plugin := image(d, "k8s-device-plugin")
	r, known := nvidia.ParseRelease(plugin)
	return known && strings.Contains(plugin, "k8s-device-plugin:") && !r.Before(nvidia.Release{0, 20, 0})
}
