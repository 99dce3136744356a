package doctor

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/nvidia"
)

// checkMIG reports where devices are partitioned, and where they could not be.
func checkMIG(f *Facts) []Finding {
	on := newFinding(OK, "MIG is on: an instance is a slice that the hardware holds")
	failed := newFinding(Problem, "the MIG manager could not partition a node's devices as configured").
		WithRemedy("kubectl -n gpu-operator logs -l app=nvidia-mig-manager, and set the label nvidia.com/mig.config to a layout that the devices have")
	empty := newFinding(Warning, "MIG is on, and the node offers no instance").
		WithRemedy("kubectl label node NODE --overwrite nvidia.com/mig.config=all-1g.10gb with the GPU Operator, or nvidia-smi mig -cgi 1g.10gb -C on the node")
	for _, n := range f.Nodes {
		where, strategy := object("node", "", n.Name), n.Labels["nvidia.com/mig.strategy"]
		if state := n.Labels["nvidia.com/mig.config.state"]; state == "failed" {
			failed = failed.With(where, "metadata.labels[nvidia.com/mig.config.state]", state)
		}
		switch {
		case strategy == "" || strategy == "none":
		case strategy == "mixed" && !offersInstances(n) && !offersWholeGPUs(n):
			empty = empty.With(where, "metadata.labels[nvidia.com/mig.strategy]", strategy)
		default:
			on = on.With(where, "metadata.labels[nvidia.com/mig.strategy]", strategy)
		}
	}
	return withEvidence(failed, empty, on)
}

// labelMIGConfig selects a node's MIG layout.
const labelMIGConfig = "nvidia.com/mig.config"

// checkMIGConfig reads the layouts of the MIG manager, and looks for nodes that select one which is not there.
func checkMIGConfig(f *Facts) []Finding {
	layouts, all := migLayouts(f)
	if len(layouts) == 0 {
		return all
	}
	missing := newFinding(Problem, "the selected MIG layout does not exist: the MIG manager does not partition these nodes")
	for _, n := range f.Nodes {
		if selected := n.Labels[labelMIGConfig]; selected != "" && layouts[selected] == nil {
			missing = missing.With(object("node", "", n.Name), "metadata.labels["+labelMIGConfig+"]", selected)
		}
	}
	first := slices.Sorted(maps.Keys(layouts))[0]
	return append(all, withEvidence(missing.WithRemedy("kubectl label node NODE --overwrite %s=%s, or another layout of the configuration", labelMIGConfig, first))...)
}

// migLayouts are the layouts of all configurations, by name, and errors in these.
func migLayouts(f *Facts) (layouts map[string]nvidia.MIGLayout, all []Finding) {
	layouts = map[string]nvidia.MIGLayout{}
	for _, s := range f.settings(nvidia.IsMIGConfig) {
		c, err := nvidia.ParseMIGConfig(s.Text)
		if err != nil {
			all = append(all, newFinding(Problem, "the MIG manager cannot use this configuration: it partitions nothing").With(s.Object, s.field(""), err.Error()).
				WithRemedy("correct it; gpuslice doctor -f FILE checks a configuration before it is applied"))
			continue
		}
		maps.Copy(layouts, c.Layouts)
		all = append(all, newFinding(OK, "the MIG manager knows %d layouts", len(c.Layouts)).With(s.Object, s.field("mig-configs"), decimal(len(c.Layouts))))
	}
	return layouts, all
}

// checkMIGStrategy looks for nodes that the strategy single cannot serve: their devices have instances of several
// profiles, or are not partitioned alike.
func checkMIGStrategy(f *Facts) []Finding {
	layouts, _ := migLayouts(f)
	found := newFinding(Problem, "the MIG strategy is single, and nodes have instances of several profiles: the device plugin offers none of them")
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
