package doctor

import (
	"fmt"
	"slices"
	"strings"

	plugin "github.com/NVIDIA/k8s-device-plugin/api/config/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// checkPluginConfig reads the device plugin's configurations as the plugin does: settings with which it does not start,
// and settings that it ignores.
func checkPluginConfig(f *Facts) []Finding {
	var all []Finding
	for _, s := range f.settings(nvidia.IsPluginConfig) {
		if s.isDefaultsName() {
			all = append(all, newFinding(Problem, "the values give a configuration where the device plugin's chart wants the name of one: no node gets it").
				With(s.Object, s.field(""), "a configuration").
				WithRemedy("write it under config.map with a name, and the name in config.default"))
			continue
		}
		if s.asFields {
			all = append(all, newFinding(Problem,
				"the values give a configuration as fields, and the charts of NVIDIA want a text: nothing is installed with them").
				With(s.Object, s.field(""), "fields").
				WithRemedy("write |- behind its name, so that the lines below are a text"))
		}
		c, unknown, err := f.readPluginConfig(s)
		if err != nil {
			all = append(all, unusable(s, unknown, err))
			continue
		}
		if len(unknown) > 0 {
			all = append(all, ignoredFields(s, c, unknown))
		}
		all = append(all, f.contradictions(s, c)...)
		all = append(all, f.mpsBesideMIG(s, c)...)
	}
	return all
}

// readPluginConfig reads a configuration as the cluster's device plugin does.
func (f *Facts) readPluginConfig(s Setting) (*nvidia.PluginConfig, []nvidia.UnknownField, error) {
	c, unknown, err := nvidia.ParsePluginConfig(s.Text)
	return c, slices.DeleteFunc(unknown, func(u nvidia.UnknownField) bool { // newer than the parser
		return u.Path == "flags.plugin."+policyField && slices.ContainsFunc(parts(f, nvidia.DevicePlugin), hasPolicyFlag)
	}), err
}

const checkBefore = "gpuslice doctor -f FILE checks a configuration before it is applied"

// ignoredFields reports fields that the plugin does not know, with what it makes of the rest.
func ignoredFields(s Setting, c *nvidia.PluginConfig, unknown []nvidia.UnknownField) Finding {
	shared := c.Sharing.ReplicatedResources().Resources
	found := newFinding(Warning, "the device plugin ignores fields of its configuration")
	if len(shared) == 0 && slices.ContainsFunc(unknown, func(u nvidia.UnknownField) bool { return strings.HasPrefix(u.Correct, "sharing") }) {
		found = newFinding(Problem, "the device plugin ignores fields of its configuration, and shares nothing")
	}
	found = withUnknown(found, s, unknown)
	for _, r := range shared {
		found = found.With(s.Object, s.field("sharing"),
			fmt.Sprintf("%d replicas of %s by %s, without these fields", r.Replicas, r.Name, c.Sharing.SharingStrategy()))
	}
	return found.WithRemedy("write each field where it belongs, or remove it; " + checkBefore)
}

func withUnknown(found Finding, s Setting, unknown []nvidia.UnknownField) Finding {
	for _, u := range unknown {
		found = found.With(s.Object, s.field(u.Path), u.Advice())
	}
	return found
}

// unusable is a configuration with which the plugin does not start. Fields that it does not know may be the reason.
func unusable(s Setting, unknown []nvidia.UnknownField, err error) Finding {
	remedy := "correct it"
	switch text := err.Error(); {
	case len(unknown) > 0:
		remedy = "write each field where it belongs"
	case strings.Contains(text, "must be >= 2"):
		remedy = "remove the resource from sharing: what is not listed is not shared. Whole GPUs need the configuration \"version: v1\" alone"
	case strings.Contains(text, "no resources specified"):
		remedy = "add resources: [{name: nvidia.com/gpu, replicas: 4}] to the sharing strategy, or remove the strategy"
	case strings.Contains(text, "no replicas specified"):
		remedy = "add replicas, 2 or more, to each of the resources"
	}
	return withUnknown(newFinding(Problem, "NVIDIA's device plugin does not start with this configuration").
		With(s.Object, s.field(""), err.Error()), s, unknown).WithRemedy("%s; %s", remedy, checkBefore)
}

// contradictions are settings of a configuration that do not go together, or that the plugin drops.
func (f *Facts) contradictions(s Setting, c *nvidia.PluginConfig) []Finding {
	var all []Finding
	mps := c.Sharing.SharingStrategy() == plugin.SharingStrategyMPS
	strategy, from := f.migStrategy(s, c)
	if own := nvidia.MIGStrategy(c); own != "" && own != strategy {
		all = append(all, newFinding(Warning, "two MIG strategies are set: the device plugin takes the one beside its configuration").
			With(from.Object, from.Field, strategy).With(s.Object, s.field("flags.migStrategy"), own+", ignored").
			WithRemedy("write the one that is meant beside the configuration, and none in it"))
	}
	if mps && strategy == plugin.MigStrategyMixed {
		all = append(all, newFinding(Problem,
			"NVIDIA's device plugin does not start with this configuration: it has no MPS where MIG instances have names of their own").
			With(from.Object, from.Field, plugin.MigStrategyMixed).
			WithRemedy("use timeSlicing in the place of mps, or migStrategy: none"))
	}
	if mps && len(c.Sharing.TimeSlicing.Resources) > 0 {
		all = append(all, newFinding(Warning, "a configuration shares by MPS and by time-slicing: the device plugin uses MPS alone").
			With(s.Object, s.field("sharing.timeSlicing"), "ignored").WithRemedy("remove one of sharing.timeSlicing and sharing.mps"))
	}
	dropped := newFinding(Note,
		"the device plugin ignores its own names and selections of devices: only renameByDefault renames, and all devices are shared")
	if len(c.Resources.GPUs)+len(c.Resources.MIGs) > 0 {
		dropped = dropped.With(s.Object, s.field("resources"), "ignored")
	}
	for _, r := range c.Sharing.ReplicatedResources().Resources {
		if r.Rename != "" && r.Rename != r.Name.DefaultSharedRename() {
			dropped = dropped.With(s.Object, s.field("sharing resources[].rename"), string(r.Rename))
		}
		if !r.Devices.All {
			dropped = dropped.With(s.Object, s.field("sharing resources[].devices"), "ignored")
		}
	}
	return append(all, withEvidence(dropped)...)
}

// mpsBesideMIG looks for MIG where a configuration shares by MPS, under whichever MIG strategy.
func (f *Facts) mpsBesideMIG(s Setting, c *nvidia.PluginConfig) []Finding {
	if c.Sharing.SharingStrategy() != plugin.SharingStrategyMPS {
		return nil
	}
	const remedy = "share these nodes' GPUs by timeSlicing, in a configuration that they select: kubectl label node NODE --overwrite " + labelPluginConfig +
		"=NAME; or disable MIG there: kubectl label node NODE --overwrite " + labelMIGConfig + "=all-disabled"
	found := newFinding(Problem, "MPS is configured for nodes with MIG: GPU feature discovery (0.19) ends with an error there, so that labels are missing or "+
		"old, and gpuslice finds no pool or a wrong one").WithRemedy(remedy)
	for _, e := range f.underMIG(f.configuredBy(s)) {
		found = found.With(e.Object, e.Field, e.Value)
	}
	if len(found.Evidence) > 0 {
		return []Finding{found.With(s.Object, s.field("sharing"), "mps")}
	}
	strategy, from := f.migStrategy(s, c)
	if strategy != plugin.MigStrategySingle || strings.HasPrefix(from.Object, "clusterpolicy/") { // which has it by default
		return nil
	}
	return []Finding{newFinding(Warning, "MPS is configured beside migStrategy: single: on nodes with MIG, GPU feature discovery (0.19) ends with an error "+
		"and writes no labels").With(from.Object, from.Field, plugin.MigStrategySingle).WithRemedy(remedy)}
}
