package doctor

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/nvidia"
)

// checkPlugin looks for NVIDIA's device plugin, and how it passes devices to containers.
func checkPlugin(f *Facts) []Finding {
	if f.unread(whatDaemonSets) {
		return nil
	}
	plugins := parts(f, nvidia.DevicePlugin)
	if len(plugins) == 0 {
		if len(gpuNodes(f)) == 0 {
			return nil // reported already: there are no GPUs
		}
		return []Finding{newFinding(Note, "nodes offer GPUs, and no DaemonSet looks like NVIDIA's device plugin: it is the provider's own, or a program on the node, and the API does not show its settings").
			With("daemonsets", "spec.template.spec.containers", "none runs nvidia-device-plugin")}
	}
	var all []Finding
	for _, d := range plugins {
		all = append(all, newFinding(OK, "NVIDIA's device plugin, %d of %d ready", d.Status.NumberReady, d.Status.DesiredNumberScheduled).
			With(daemonSet(d), "image", image(d, "device-plugin")))
		if d.Status.NumberReady < d.Status.DesiredNumberScheduled {
			all = append(all, newFinding(Warning, "the device plugin is not ready on %d nodes, whose GPUs nobody can request",
				d.Status.DesiredNumberScheduled-d.Status.NumberReady).
				With(daemonSet(d), "status.numberReady", decimal(d.Status.NumberReady)).
				WithRemedy("kubectl -n %s describe daemonset %s", d.Namespace, d.Name))
		}
		strategy, container, _ := variable(d, "DEVICE_LIST_STRATEGY")
		flag, _ := argument(d, "device-list-strategy")
		if strategy = cmp.Or(flag, strategy, "envvar"); strings.Contains(strategy, "envvar") {
			all = append(all, newFinding(Note, "the device plugin names devices in a variable, so the container toolkit has to trust the value that a pod sets").
				With(daemonSet(d), "env[DEVICE_LIST_STRATEGY]", strategy).
				WithRemedy("kubectl -n %s set env daemonset/%s -c %s DEVICE_LIST_STRATEGY=volume-mounts\ntogether with the toolkit's settings: see visible-devices",
					d.Namespace, d.Name, cmp.Or(container, d.Spec.Template.Spec.Containers[0].Name)))
		}
	}
	return all
}

// labelPluginConfig selects a node's configuration of the device plugin.
const labelPluginConfig = "nvidia.com/device-plugin.config"

// checkPluginSelection looks for nodes, and for a ClusterPolicy, that select a configuration of the device plugin which
// is not there.
func checkPluginSelection(f *Facts) []Finding {
	settings := f.settings(nvidia.IsPluginConfig)
	if len(settings) == 0 || f.unread(whatConfigs) {
		return nil
	}
	var keys []string
	missing := newFinding(Problem, "the device plugin's selected configuration does not exist: the plugin does not start there")
	for _, s := range settings {
		keys = append(keys, s.Key)
	}
	for _, n := range f.Nodes {
		if selected := n.Labels[labelPluginConfig]; selected != "" && !slices.Contains(keys, selected) {
			missing = missing.With(object("node", "", n.Name), "metadata.labels["+labelPluginConfig+"]", selected)
		}
	}
	for _, p := range f.ClusterPolicies {
		if selected := p.Spec.DevicePlugin.Config.Default; selected != "" && !slices.Contains(keys, selected) {
			missing = missing.With(clusterPolicy(p), "spec.devicePlugin.config.default", selected)
		}
	}
	return withEvidence(missing.WithRemedy("select one that exists: kubectl label node NODE --overwrite %s=%s", labelPluginConfig, slices.Min(keys)))
}

// policyFlag chooses on which GPU of a node NVIDIA's device plugin gives a replica or an instance: distributed, the default, or packed.
// Device plugins before 0.20 have no such flag.
const (
	policyFlag     = "shared-devices-allocation-policy"
	policyVariable = "SHARED_DEVICES_ALLOCATION_POLICY"
)

// checkAllocationPolicy looks for a device plugin that spreads replicas and instances over the GPUs of a node, where there are several.
func checkAllocationPolicy(f *Facts) []Finding {
	found := newFinding(Note, "the device plugin spreads replicas and MIG instances over the GPUs of a node: packed, they leave GPUs without pods, which can then be "+
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
