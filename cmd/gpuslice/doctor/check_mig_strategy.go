package doctor

import "strings"

// checkMIGStrategy looks for nodes that the strategy single cannot serve: their devices have instances of several
// profiles, or are not partitioned alike.
func checkMIGStrategy(f *Facts) []Finding {
	layouts, _ := migLayouts(f)
	found := newFinding(Problem,
		"the MIG strategy is single, and nodes have instances of several profiles: the device plugin offers none of them")
	single := ""
	for _, p := range f.ClusterPolicies {
		if p.Spec.MIG.Strategy == "single" {
			single = p.Metadata.Name
			found = found.With(clusterPolicy(p), "spec.mig.strategy", "single")
		}
	}
	nodes := 0
	for _, n := range f.Nodes {
		where, layout := object("node", "", n.Name), n.Labels[labelMIGConfig]
		switch {
		case strings.HasSuffix(n.Labels["nvidia.com/gpu.product"], "-MIG-INVALID"):
			found = found.With(where, "metadata.labels[nvidia.com/gpu.product]", n.Labels["nvidia.com/gpu.product"])
		case single != "" && layouts[layout].Mixed():
			found = found.With(where, "metadata.labels["+labelMIGConfig+"]", layout)
		default:
			continue
		}
		nodes++
	}
	if nodes == 0 {
		return nil
	}
	if single == "" {
		return []Finding{found.WithRemedy("set migStrategy: mixed in the device plugin and in GPU feature discovery")}
	}
	return []Finding{found.WithRemedy("kubectl patch clusterpolicy %s --type merge -p '{\"spec\":{\"mig\":{\"strategy\":\"mixed\"}}}'\n"+
		"or give these nodes a layout of one profile: kubectl label node NODE --overwrite %s=all-1g.10gb", single, labelMIGConfig)}
}
