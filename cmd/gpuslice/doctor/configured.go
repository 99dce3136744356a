package doctor

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// configuredBy are the nodes with GPUs whose device plugin reads a setting: those that select it by label and, where it is the default or
// the only one, those that select none.
func (f *Facts) configuredBy(s Setting) (nodes []*corev1.Node) {
	all := f.settings(nvidia.IsPluginConfig)
	selected := ""
	for _, p := range f.ClusterPolicies {
		selected = cmp.Or(selected, p.Spec.DevicePlugin.Config.Default)
	}
	isDefault := len(all) == 1 || s.Key != "" && s.Key == cmp.Or(selected, "default") // as the plugin's chart falls back
	for _, n := range f.Nodes {
		key := n.Labels[labelPluginConfig]
		if hasGPUs(f, n) && (key == s.Key && key != "" || key == "" && isDefault || s.Key == "" && len(all) == 1) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// hasGPUs reports whether a node has GPUs for containers, also where none is offered now.
func hasGPUs(f *Facts, n *corev1.Node) bool {
	if f.forMachines(n) {
		return false
	}
	return n.Labels["nvidia.com/gpu.present"] == "true" || n.Labels["nvidia.com/gpu.product"] != "" || len(f.offered(n)) > 0
}

// migStrategy is the MIG strategy in force with a configuration, and where it is set; "": it is not known. Variables and arguments of the
// device plugin count before its configuration, and the GPU Operator and the values of a chart set them.
func (f *Facts) migStrategy(s Setting, c *nvidia.PluginConfig) (strategy string, from Evidence) {
	for _, d := range parts(f, nvidia.DevicePlugin) {
		value, given := argument(d, "mig-strategy")
		if !given {
			value, _, given = variable(d, "MIG_STRATEGY")
		}
		if given && value != "" {
			return value, Evidence{daemonSet(d), "MIG strategy", value}
		}
	}
	for _, p := range f.ClusterPolicies {
		if value := p.Spec.MIG.Strategy; value != "" {
			return value, Evidence{clusterPolicy(p), "spec.mig.strategy", value}
		}
	}
	if s.strategy.Value != "" {
		return s.strategy.Value, s.strategy
	}
	strategy = nvidia.MIGStrategy(c)
	return strategy, Evidence{s.Object, s.field("flags.migStrategy"), strategy}
}

// underMIG are those of the nodes with a GPU under MIG, or a layout that brings one, each with the label or resource that shows it.
func (f *Facts) underMIG(nodes []*corev1.Node) (shown []Evidence) {
	layouts, _ := migLayouts(f)
	for _, n := range nodes {
		where, product, selected := object("node", "", n.Name), n.Labels["nvidia.com/gpu.product"], n.Labels[labelMIGConfig]
		card, _ := migCardOf(n)
		enables := slices.ContainsFunc(layouts[selected], func(d nvidia.MIGDevices) bool {
			applies, known := d.AppliesTo(card)
			return applies && known && *d.Enabled
		})
		switch {
		case strings.Contains(product, "-MIG-"):
			shown = append(shown, Evidence{where, "metadata.labels[nvidia.com/gpu.product]", product})
		case offersInstances(n):
			shown = append(shown, Evidence{where, "status.allocatable", nvidia.MIGPrefix + "..."})
		case enables:
			shown = append(shown, Evidence{where, "metadata.labels[" + labelMIGConfig + "]", selected})
		}
	}
	return shown
}
