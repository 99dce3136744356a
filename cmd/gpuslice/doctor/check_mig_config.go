package doctor

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

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
	first := "LAYOUT"
	for _, name := range slices.Sorted(maps.Keys(layouts)) {
		if len(validation.IsValidLabelValue(name)) == 0 { // a shell runs the remedy
			first = name
			break
		}
	}
	return append(all, withEvidence(
		missing.WithRemedy("kubectl label node NODE --overwrite %s=%s, or another layout of the configuration", labelMIGConfig, first))...)
}

// migLayouts are the layouts of all configurations, by name, and errors in these.
func migLayouts(f *Facts) (layouts map[string]nvidia.MIGLayout, all []Finding) {
	layouts = map[string]nvidia.MIGLayout{}
	for _, s := range f.settings(nvidia.IsMIGConfig) {
		c, err := nvidia.ParseMIGConfig(s.Text)
		if err != nil {
			all = append(all, newFinding(Problem, "the MIG manager cannot use this configuration: it partitions nothing").
				With(s.Object, s.field(""), err.Error()).
				WithRemedy("correct it; gpuslice doctor -f FILE checks a configuration before it is applied"))
			continue
		}
		maps.Copy(layouts, c.Layouts)
		all = append(all, newFinding(OK, "the MIG manager knows %d layouts", len(c.Layouts)).
			With(s.Object, s.field("mig-configs"), decimal(len(c.Layouts))))
	}
	return layouts, all
}
