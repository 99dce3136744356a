package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// labelWorkload is for what the GPU Operator prepares a node: "container", "vm-passthrough", "vm-vgpu".
const labelWorkload = "nvidia.com/gpu.workload.config"

// devicesKubeVirt begins the resources that KubeVirt adds to the nodes on which virtual machines may run.
const devicesKubeVirt = "devices.kubevirt.io/"

// forMachines reports whether a node's GPUs are passed through to virtual machines, so that containers get none.
func (f *Facts) forMachines(n *corev1.Node) bool {
	workload, labelled := n.Labels[labelWorkload]
	for _, p := range f.ClusterPolicies {
		if s := p.Spec.SandboxWorkloads; !labelled && s.Enabled != nil && *s.Enabled {
			workload = cmp.Or(workload, s.DefaultWorkload)
		}
	}
	if workload != "" {
		return strings.HasPrefix(workload, "vm-") && len(f.offered(n)) == 0
	}
	machines := slices.ContainsFunc(nodeResources(n), func(name string) bool { return strings.HasPrefix(name, devicesKubeVirt) })
	return machines && len(f.offered(n)) == 0 && slices.ContainsFunc(f.unknownOffers(n), func(name string) bool {
		return strings.ToLower(name) != name // as in NVIDIA's list of PCI devices, from which its device plugin for KubeVirt takes the names
	})
}

// unknownOffers are the resources of NVIDIA that a node offers and that are not known to be GPUs: renamed GPUs, cards for virtual machines,
// or network cards.
func (f *Facts) unknownOffers(n *corev1.Node) []string {
	return slices.DeleteFunc(nodeResources(n), func(name string) bool {
		return !strings.HasPrefix(name, nvidia.ResourcePrefix) || f.isGPU(name)
	})
}

// nodeResources are the resources that a node offers, sorted.
func nodeResources(n *corev1.Node) (names []string) {
	for name, q := range n.Status.Allocatable {
		if !q.IsZero() {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

// modelLabel is the label that shows the model of a node's GPUs; "": none does.
func modelLabel(n *corev1.Node) (label, value string) {
	model, told := instanceModel(n)
	for _, label := range []string{model, labelGKEAccelerator, "nvidia.com/gpu.product"} {
		if value := n.Labels[label]; value != "" {
			return label, cmp.Or(told, value)
		}
	}
	return "", ""
}

// withUnknownOffers adds the resources of a node that are not known to be GPUs.
func (f *Facts) withUnknownOffers(found Finding, n *corev1.Node) Finding {
	for _, name := range f.unknownOffers(n) {
		amount := n.Status.Allocatable[corev1.ResourceName(name)]
		found = found.With(object("node", "", n.Name), "status.allocatable", name+": "+amount.String())
	}
	return found
}

// passedThrough looks for nodes whose GPUs are for virtual machines.
func (f *Facts) passedThrough() Finding {
	found := newFinding(Note, "GPUs of these nodes are passed through to virtual machines: "+
		"containers get none of them, and gpuslice plans nothing there").
		WithRemedy("nothing, if that is meant; to give the GPUs of a node to containers, with the GPU Operator: "+
			"kubectl label node NODE --overwrite %s=container",
			labelWorkload)
	for _, n := range f.Nodes {
		if !f.forMachines(n) {
			continue
		}
		if value := n.Labels[labelWorkload]; value != "" {
			found = found.With(object("node", "", n.Name), "metadata.labels["+labelWorkload+"]", value)
		}
		found = f.withUnknownOffers(found, n)
	}
	return found
}

// offeringUnknown looks for nodes whose labels show GPUs, and which offer resources of NVIDIA under other names alone.
func (f *Facts) offeringUnknown() Finding {
	found := newFinding(Warning, "labels of nodes show GPUs, and the nodes offer none by a name that gpuslice knows: "+
		"a renamed resource needs a declared pool, "+
		"and until then requests for it do not count as GPUs")
	remedy := ""
	for _, n := range f.Nodes {
		label, value := modelLabel(n)
		if label == "" || f.forMachines(n) || hasHAMiPlugin(n) || len(f.offered(n)) > 0 || len(f.unknownOffers(n)) == 0 {
			continue
		}
		found = f.withUnknownOffers(found.With(object("node", "", n.Name), "metadata.labels["+label+"]", value), n)
		remedy = cmp.Or(remedy, declaration(n, label, f.unknownOffers(n)[0]))
	}
	return found.WithRemedy("if the device plugin renames GPUs, declare a pool in the default policy: %s\nif the names are of other devices, "+
		"see why the plugin offers no GPUs: its log on the node", remedy)
}

// declaration is the declared pool of a renamed resource, with what the node's labels say of its GPUs.
func declaration(n *corev1.Node, label, resource string) string {
	offer := pools.OfferOf(n, string(wholeGPU))
	strategy, replicas, memory := cmp.Or(string(offer.Strategy), "STRATEGY"), "NUMBER", "MEMORY"
	if offer.Replicas > 0 {
		replicas = decimal(offer.Replicas)
	}
	if offer.DeviceMemory > 0 {
		memory = offer.DeviceMemory.String()
	}
	if offer.MPSProvider != "" {
		strategy += ", mpsProvider: " + string(offer.MPSProvider)
	}
	return fmt.Sprintf("pools: {declared: [{name: renamed, selector: {%s: %q}, resource: %q, strategy: %s, replicas: %s, deviceMemory: %s}]}",
		label, n.Labels[label], resource, strategy, replicas, memory)
}

// offeringNowhere is the finding that no node offers a GPU, with the remedy unless others have theirs.
func (f *Facts) offeringNowhere(remedy bool) Finding {
	found := newFinding(Warning, "none of the %d nodes offers a GPU to containers by a name that gpuslice knows", len(f.Nodes))
	for _, n := range f.Nodes {
		found = f.withUnknownOffers(found, n)
	}
	if len(found.Evidence) == 0 {
		found = found.With("nodes", "status.allocatable", "no name begins with "+nvidia.ResourcePrefix)
	}
	const fromZero = "; where an autoscaler starts GPU nodes from zero, declare pools in the default policy"
	switch plugins := parts(f, nvidia.DevicePlugin); {
	case !remedy:
		return found
	case len(plugins) > 0:
		return found.WithRemedy("see which nodes NVIDIA's device plugin runs on: kubectl -n %s describe daemonset %s%s",
			plugins[0].Namespace, plugins[0].Name, fromZero)
	case len(f.ClusterPolicies) > 0:
		return found.WithRemedy("see on which nodes the GPU Operator finds GPUs: kubectl get nodes -L nvidia.com/gpu.present,%s%s",
			labelWorkload, fromZero)
	}
	return found.WithRemedy("install NVIDIA's device plugin or the GPU Operator%s", fromZero)
}
