package doctor

import (
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// pluginConfig is what we read of the device plugin's configuration.
type pluginConfig struct {
	Version string `json:"version"`
	Sharing struct {
		TimeSlicing sharing `json:"timeSlicing"`
		MPS         sharing `json:"mps"`
	} `json:"sharing"`
}

type sharing struct {
	RenameByDefault            bool  `json:"renameByDefault"`
	FailRequestsGreaterThanOne *bool `json:"failRequestsGreaterThanOne"`
	Resources                  []struct {
		Name     string `json:"name"`
		Replicas int    `json:"replicas"`
	} `json:"resources"`
}

// maxConfig bounds a configuration that is parsed.
const maxConfig = 64 << 10

// checkSharing reads how the device plugin is configured to share devices.
func checkSharing(f *Facts) []Finding {
	var all []Finding
	for _, name := range slices.Sorted(maps.Keys(f.Configs)) {
		for _, key := range slices.Sorted(maps.Keys(f.Configs[name])) {
			var c pluginConfig
			text := f.Configs[name][key]
			if len(text) > maxConfig || yaml.Unmarshal([]byte(text), &c) != nil || c.Version == "" {
				continue // a ConfigMap may hold other things too
			}
			where := "configmap/" + name
			all = append(all, sharingFindings(where, key, "timeSlicing", c.Sharing.TimeSlicing)...)
			all = append(all, sharingFindings(where, key, "mps", c.Sharing.MPS)...)
		}
	}
	return all
}

func sharingFindings(where, key, kind string, s sharing) []Finding {
	var all []Finding
	remedy := fmt.Sprintf("set sharing.%s.%%s: true under %s of %s, and restart the device plugin", kind, key, where)
	for _, r := range s.Resources {
		field := "data[" + key + "] sharing." + kind + ".resources"
		all = append(all, newFinding(OK, "%s gives %d replicas of %s", kind, r.Replicas, r.Name).With(where, field, r.Name))
	}
	if len(s.Resources) == 0 {
		return nil
	}
	if !s.RenameByDefault {
		all = append(all, newFinding(Warning, "shared devices keep the name of whole ones: a pod that requests nvidia.com/gpu: 1 may expect a whole GPU, and pods outside gpuslice cannot be distinguished").
			With(where, "data["+key+"] sharing."+kind+".renameByDefault", "false").WithRemedy(remedy, "renameByDefault"))
	}
	if fails := s.FailRequestsGreaterThanOne; kind == "timeSlicing" && (fails == nil || !*fails) {
		all = append(all, newFinding(Warning, "two replicas may be requested, and are no more than one: both may be on one device, and give no more time on it").
			With(where, "data["+key+"] sharing."+kind+".failRequestsGreaterThanOne", "false").WithRemedy(remedy, "failRequestsGreaterThanOne"))
	}
	return all
}
