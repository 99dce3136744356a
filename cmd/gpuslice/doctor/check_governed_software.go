package doctor

import (
	"slices"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// checkGovernedSoftware looks for NVIDIA's own software in governed namespaces: its pods use devices that they do not request. Only
// the device plugin's stay visible. The GPU Operator's validator makes pods for nodes that it names itself, which cannot be let pass:
// a tenant's pod can look the same.
func checkGovernedSoftware(f *Facts) []Finding {
	hidden := newFinding(Problem, "NVIDIA's software runs in a governed namespace: gpuslice hides the devices that it serves from its pods")
	visible := newFinding(Warning, "NVIDIA's device plugin runs in a governed namespace: gpuslice warns at each of its pods")
	denied := newFinding(Problem, "the GPU Operator runs in a governed namespace: pods by which it validates nodes are denied for their nodeName, "+
		"and no node becomes ready")
	var namespaces []string
	for _, g := range f.Governed() {
		for _, p := range f.ClusterPolicies {
			if operatorNamespace(p) == g.Name {
				denied = denied.With(clusterPolicy(p), "policy", g.Input.Policy.Name)
				namespaces = append(namespaces, g.Name)
			}
		}
		for _, d := range f.DaemonSets {
			switch p := nvidia.PartOf(d); {
			case d.Namespace != g.Name || p == nvidia.OtherSoftware:
				continue
			case p == nvidia.Validator:
				denied = denied.With(daemonSet(d), "policy", g.Input.Policy.Name)
			case p == nvidia.DevicePlugin:
				visible = visible.With(daemonSet(d), "policy", g.Input.Policy.Name)
			default:
				hidden = hidden.With(daemonSet(d), "policy", g.Input.Policy.Name)
			}
			namespaces = append(namespaces, g.Name)
		}
	}
	const remedy = "leave these namespaces out, by the chart's value excludedNamespaces or the namespaceSelector of the webhook configurations: %q"
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)
	return withEvidence(denied.WithRemedy(remedy, namespaces), hidden.WithRemedy(remedy, namespaces), visible.WithRemedy(remedy, namespaces))
}
