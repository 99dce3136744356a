package doctor

import "slices"

// checkGovernedSoftware looks for NVIDIA's own DaemonSets in governed namespaces: their pods use devices that they do not
// request.
func checkGovernedSoftware(f *Facts) []Finding {
	found := newFinding(Problem, "NVIDIA's software runs in a governed namespace: gpuslice hides the devices from its pods that it serves")
	var namespaces []string
	for _, g := range f.Governed() {
		for _, d := range f.DaemonSets {
			if d.Namespace != g.Name || part(d) == otherSoftware {
				continue
			}
			found = found.With(daemonSet(d), "policy", g.Input.Policy.Name)
			if !slices.Contains(namespaces, g.Name) {
				namespaces = append(namespaces, g.Name)
			}
		}
	}
	if len(namespaces) == 0 {
		return nil
	}
	return []Finding{found.WithRemedy("leave these namespaces out, by the chart's value excludedNamespaces or the namespaceSelector of the webhook configurations: %q", namespaces)}
}
