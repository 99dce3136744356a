package doctor

import (
	"slices"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// checkGovernedSoftware looks for NVIDIA's own DaemonSets in governed namespaces: their pods use devices that they do not
// request. Only the device plugin's stay visible.
func checkGovernedSoftware(f *Facts) []Finding {
	hidden := newFinding(Problem, "NVIDIA's software runs in a governed namespace: gpuslice hides the devices that it serves from its pods")
	visible := newFinding(Warning, "NVIDIA's device plugin runs in a governed namespace: gpuslice warns at each of its pods")
	var namespaces []string
	for _, g := range f.Governed() {
		for _, d := range f.DaemonSets {
			switch p := nvidia.PartOf(d); {
			case d.Namespace != g.Name || p == nvidia.OtherSoftware:
				continue
			case p == nvidia.DevicePlugin:
				visible = visible.With(daemonSet(d), "policy", g.Input.Policy.Name)
			default:
				hidden = hidden.With(daemonSet(d), "policy", g.Input.Policy.Name)
			}
			if !slices.Contains(namespaces, g.Name) {
				namespaces = append(namespaces, g.Name)
			}
		}
	}
	const remedy = "leave these namespaces out, by the chart's value excludedNamespaces or the namespaceSelector of the webhook configurations: %q"
	return withEvidence(hidden.WithRemedy(remedy, namespaces), visible.WithRemedy(remedy, namespaces))
}
