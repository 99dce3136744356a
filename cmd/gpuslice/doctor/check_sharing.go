package doctor

import (
	plugin "github.com/NVIDIA/k8s-device-plugin/api/config/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/nvidia"
)

// checkSharing reads how the device plugin is configured to share devices. What the plugin denies is plugin-config's.
func checkSharing(f *Facts) []Finding {
	var all []Finding
	for _, s := range f.settings(nvidia.IsPluginConfig) {
		c, _, err := nvidia.ParsePluginConfig(s.Text)
		if err != nil {
			continue
		}
		strategy := "timeSlicing"
		if c.Sharing.SharingStrategy() == plugin.SharingStrategyMPS {
			strategy = "mps"
		}
		all = append(all, sharingFindings(s, strategy, c.Sharing.ReplicatedResources())...)
	}
	return all
}

func sharingFindings(s Setting, strategy string, shared *plugin.ReplicatedResources) []Finding {
	if len(shared.Resources) == 0 {
		return nil
	}
	var all []Finding
	at := "sharing." + strategy
	for _, r := range shared.Resources {
		all = append(all, newFinding(OK, "%s gives %d replicas of %s", strategy, r.Replicas, r.Name).With(s.Object, s.field(at+".resources"), string(r.Name)))
	}
	remedy := "set %s.%s: true in " + s.Object + ", and restart the device plugin"
	if !shared.RenameByDefault {
		all = append(all, newFinding(Warning, "shared devices keep the name of whole ones: a pod that requests nvidia.com/gpu: 1 may expect a whole GPU, and pods outside gpuslice cannot be distinguished").
			With(s.Object, s.field(at+".renameByDefault"), "false").WithRemedy(remedy, at, "renameByDefault"))
	}
	if strategy == "timeSlicing" && !shared.FailRequestsGreaterThanOne {
		all = append(all, newFinding(Warning, "two replicas may be requested, and are no more than one: both may be on one device, and give no more time on it").
			With(s.Object, s.field(at+".failRequestsGreaterThanOne"), "false").WithRemedy(remedy, at, "failRequestsGreaterThanOne"))
	}
	return all
}
