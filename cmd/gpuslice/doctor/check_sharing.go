package doctor

import (
	"fmt"
	"slices"
	"strings"

	plugin "github.com/NVIDIA/k8s-device-plugin/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/mig"
)

// mostMemory is that of the largest GPU, of 288 GB.
const mostMemory api.MiB = 288 << 10

// checkSharing reads how the device plugin is configured to share devices. The check plugin-config covers the plugin's
// own denials.
func checkSharing(f *Facts) []Finding {
	var all []Finding
	for _, s := range f.settings(nvidia.IsPluginConfig) {
		c, unknown, err := f.readPluginConfig(s)
		if err != nil || s.isDefaultsName() || Worst(f.contradictions(s, c)) == Problem { // with which it does not start
			continue
		}
		strategy := "timeSlicing"
		if c.Sharing.SharingStrategy() == plugin.SharingStrategyMPS {
			strategy = "mps"
		}
		shared := c.Sharing.ReplicatedResources()
		found := f.sharingFindings(s, c, strategy, shared)
		shares := slices.ContainsFunc(shared.Resources, func(r plugin.ReplicatedResource) bool { return isPluginResource(string(r.Name)) })
		if shares && strategy == "timeSlicing" {
			found = append(found, f.severalReplicas(s, shared)...)
		}
		all = append(all, slices.DeleteFunc(found, func(about Finding) bool { return reportedAsIgnored(s, about, unknown) })...)
	}
	return all
}

// reportedAsIgnored reports whether plugin-config has a finding already: that fields are ignored, and what is shared then.
func reportedAsIgnored(s Setting, about Finding, unknown []nvidia.UnknownField) bool {
	return about.Level == OK && (len(unknown) > 0 || s.asFields) || slices.ContainsFunc(unknown, func(u nvidia.UnknownField) bool {
		return u.Correct != "" && about.Evidence[0].Field == s.field(u.Correct)
	})
}

func (f *Facts) sharingFindings(s Setting, c *nvidia.PluginConfig, strategy string, shared *plugin.ReplicatedResources) []Finding {
	if len(shared.Resources) == 0 {
		return nil
	}
	var all []Finding
	at := "sharing." + strategy
	for _, r := range shared.Resources {
		if unshared := f.unshared(s, c, at, string(r.Name)); unshared != nil {
			all = append(all, unshared...)
			continue
		}
		if most := int(mostMemory / contextMemory); r.Replicas > most {
			all = append(all, newFinding(Warning,
				"%s gives %d replicas of %s, and no GPU has memory for more than %d programs (a CUDA context takes %s): others do not start",
				strategy, r.Replicas, r.Name, most, contextMemory.Human()).
				With(s.Object, s.field(at+".resources"), fmt.Sprintf("%s, %d replicas", r.Name, r.Replicas)).
				WithRemedy("divide the memory of the smallest of the GPUs by %s, and configure no more replicas than that", (2*contextMemory).Human()))
			continue
		}
		all = append(all, newFinding(OK, "%s gives %d replicas of %s", strategy, r.Replicas, r.Name).
			With(s.Object, s.field(at+".resources"), string(r.Name)))
	}
	if !shared.RenameByDefault && !slices.ContainsFunc(all, func(about Finding) bool { return about.Level == Problem }) {
		all = append(all, newFinding(Warning, "shared devices keep the name of whole ones: a pod that requests nvidia.com/gpu: 1 may expect a whole GPU, and pods outside gpuslice cannot be distinguished").
			With(s.Object, s.field(at+".renameByDefault"), "false").
			WithRemedy("set %s.renameByDefault: true in %s, and restart the device plugin", at, s.Object))
	}
	return all
}

// unshared is what a configuration shares although the plugin does not offer it, so that nothing is shared.
func (f *Facts) unshared(s Setting, c *nvidia.PluginConfig, at, name string) []Finding {
	strategy, from := f.migStrategy(s, c)
	if strings.HasPrefix(name, nvidia.MIGPrefix) && (strategy == plugin.MigStrategySingle || strategy == plugin.MigStrategyNone) {
		correct := "migStrategy: mixed, under which instances have names of their own, or remove the resource"
		if strategy == plugin.MigStrategySingle {
			correct = "the name nvidia.com/gpu, which instances have under migStrategy: single, or set migStrategy: mixed"
		}
		return []Finding{newFinding(Problem, "under MIG strategy %s the device plugin offers no %s: it shares nothing, and does not say so", strategy, name).
			With(s.Object, s.field(at+".resources"), name).With(from.Object, from.Field, from.Value).WithRemedy("write %s", correct)}
	}
	if !isPluginResource(name) {
		return []Finding{newFinding(Problem, "the device plugin offers no %s: it shares nothing by that name, and does not say so", name).
			With(s.Object, s.field(at+".resources"), name).
			WithRemedy("write nvidia.com/gpu, or nvidia.com/mig-1g.10gb and the like under migStrategy: mixed; " +
				"renameByDefault: true alone renames what is shared")}
	}
	if name != string(wholeGPU) || strategy != plugin.MigStrategyMixed {
		return nil
	}
	nodes := f.configuredBy(s)
	if len(nodes) == 0 ||
		slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return !offersInstances(n) || offersWholeGPUs(n) || offers(n, sharedGPU) }) {
		return nil
	}
	found := newFinding(Warning, "all GPUs are under MIG strategy mixed, where the device plugin offers instances by their names and no %s: "+
		"it shares nothing", name).
		With(s.Object, s.field(at+".resources"), name)
	for _, n := range nodes {
		found = found.With(object("node", "", n.Name), "status.allocatable", nvidia.MIGPrefix+"...")
	}
	return []Finding{found.WithRemedy("name the instances: nvidia.com/mig-1g.10gb in the place of %s", name)}
}

// isPluginResource reports whether NVIDIA's device plugin may offer a resource by this name before it shares it. Names of
// the configuration's own are not supported.
func isPluginResource(name string) bool {
	profile, instance := strings.CutPrefix(name, nvidia.MIGPrefix)
	_, known := mig.Parse(profile)
	return name == string(wholeGPU) || instance && known
}

// severalReplicas judges whether the plugin lets a container request several replicas: it has to on a granular pool, and
// nowhere else. A configuration is a granular pool's if it has as many replicas.
func (f *Facts) severalReplicas(s Setting, shared *plugin.ReplicatedResources) []Finding {
	const field = "sharing.timeSlicing.failRequestsGreaterThanOne"
	granular := ""
	for _, p := range f.granularPools() {
		if slices.ContainsFunc(shared.Resources, func(r plugin.ReplicatedResource) bool { return r.Replicas == p.Replicas }) {
			granular = p.Name
		}
	}
	found := newFinding(Warning,
		"two replicas may be requested, and are no more than one: both may be on one device, and give no more time on it")
	switch {
	case granular == "" && shared.FailRequestsGreaterThanOne:
		return nil
	case granular == "":
	case shared.FailRequestsGreaterThanOne:
		return []Finding{newFinding(Problem,
			"the device plugin denies each pod of granular pool %s that takes more than one part: it ends as UnexpectedAdmissionError", granular).
			With(s.Object, s.field(field), "true").WithRemedy("remove %s from %s, and restart the device plugin", field, s.Object)}
	default:
		return []Finding{newFinding(OK, "a container may take several parts of a GPU of granular pool %s", granular).
			With(s.Object, s.field(field), "false")}
	}
	return []Finding{found.With(s.Object, s.field(field), "false").
		WithRemedy("set %s: true in %s, and restart the device plugin", field, s.Object)}
}
