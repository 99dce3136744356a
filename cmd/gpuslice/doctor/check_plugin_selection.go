package doctor

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

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
	example := "NAME"
	for _, s := range settings {
		keys = append(keys, s.Key)
		if s.Key != "" && (example == "NAME" || s.Key < example) && len(validation.IsValidLabelValue(s.Key)) == 0 { // a shell runs the remedy
			example = s.Key
		}
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
	return withEvidence(
		missing.WithRemedy("select one that exists: kubectl label node NODE --overwrite %s=%s", labelPluginConfig, example))
}
