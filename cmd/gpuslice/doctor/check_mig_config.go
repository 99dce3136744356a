package doctor

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
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
	all = append(all, unfitLayouts(f, layouts)...)
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

// unfitLayouts looks for layouts that the cards of the nodes cannot have, or no card, and for those in which instances share their memory.
func unfitLayouts(f *Facts, layouts map[string]nvidia.MIGLayout) []Finding {
	selected := newFinding(Problem, "the selected MIG layout does not fit the GPUs: the MIG manager removes their instances, cannot make these, and sets "+
		"nvidia.com/mig.config.state to failed").
		WithRemedy("correct the layout, or kubectl label node NODE --overwrite %s=LAYOUT with one that fits; nvidia-smi mig -lgip on the node lists "+
			"what a GPU has room for", labelMIGConfig)
	none := newFinding(Warning, "the selected MIG layout has no entry for the GPUs: the MIG manager leaves them as they are").
		WithRemedy("add an entry whose device-filter has the GPU's PCI device, or one without a device-filter; nvidia-smi --query-gpu=pci.device_id "+
			"--format=csv on the node shows it, or select another layout: kubectl label node NODE --overwrite %s=LAYOUT", labelMIGConfig)
	reported := map[string]bool{}
	for _, n := range f.Nodes {
		name := n.Labels[labelMIGConfig]
		card, known := migCardOf(n)
		if !known {
			continue
		}
		mayApply := len(layouts[name]) == 0
		for _, d := range layouts[name] {
			applies, known := d.AppliesTo(card)
			mayApply = mayApply || applies || !known
			if why := d.Exceeds(card); why != "" && applies && known {
				reported[name] = true
				selected = selected.With(object("node", "", n.Name), "metadata.labels["+labelMIGConfig+"]", name+": "+why)
			}
		}
		if !mayApply {
			none = none.With(object("node", "", n.Name), "metadata.labels["+labelMIGConfig+"]", name+", product "+n.Labels["nvidia.com/gpu.product"])
		}
	}
	unchecked := newFinding(Note, "these MIG layouts fit some GPU; whether they fit the nodes' GPUs "+
		"was not checked, because the files contain no nodes").
		WithRemedy("kubectl get nodes -o yaml > nodes.yaml, and gpuslice doctor -f FILE -f nodes.yaml; " +
			"or give the layout a device-filter with the PCI device")
	impossible := newFinding(Warning, "a MIG layout fits no GPU, or does not fit a GPU that its device-filter names: "+
		"on a node that selects it, the MIG manager removes the instances and makes none").
		WithRemedy("correct the layout, or remove it; nvidia-smi mig -lgip on a node lists what a GPU has room for")
	compute := newFinding(Warning, "a MIG layout divides instances into compute instances: the device plugin offers each under the name of the whole "+
		"instance, pods share its memory, and gpuslice plans nothing there").
		WithRemedy("write the whole instance, such as 3g.40gb in the place of 1c.3g.40gb, and share it by time-slicing")
	for _, name := range slices.Sorted(maps.Keys(layouts)) {
		for _, d := range layouts[name] {
			switch why := d.ExceedsAll(); {
			case why != "" && !reported[name]:
				impossible = impossible.With("layout/"+name, "mig-devices", why)
			case why == "" && f.unread(whatNodes) && len(d.Profiles) > 0 && !d.NamesCards():
				unchecked = unchecked.With("layout/"+name, "device-filter", cmp.Or(string(d.Filter), "none"))
			}
			for _, profile := range d.ComputeInstances() {
				compute = compute.With("layout/"+name, "mig-devices", profile)
			}
		}
	}
	return withEvidence(selected, none, impossible, compute, unchecked)
}

// migCardOf is the card that MIG divides on a node; false: its model is not known.
func migCardOf(n *corev1.Node) (nvidia.MIGCard, bool) {
	memory, _ := strconv.ParseInt(n.Labels[labelMemory], 10, 64) // none: 0, unknown
	return nvidia.MIGCardOf(n.Labels["nvidia.com/gpu.product"], memory)
}
