package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// checkDeviceClasses looks for extended resource names that several device classes have.
func checkDeviceClasses(f *Facts) []Finding {
	classes := map[string][]string{}
	for _, c := range f.Classes {
		if name := c.Spec.ExtendedResourceName; name != nil {
			classes[*name] = append(classes[*name], c.Name)
		}
	}
	var all []Finding
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		if len(classes[name]) < 2 {
			continue
		}
		slices.Sort(classes[name])
		found := newFinding(Warning, "several device classes have the extended resource name %s: pods get devices of the newest, and gpuslice plans nothing there", name).
			WithRemedy("leave spec.extendedResourceName: %s to one of %s", name, strings.Join(classes[name], ", "))
		for _, class := range classes[name] {
			found = found.With(object("deviceclass", "", class), "spec.extendedResourceName", name)
		}
		all = append(all, found)
	}
	return all
}

// checkTwoOffers looks for nodes whose GPUs both a device plugin and a driver of dynamic resource allocation give out.
func checkTwoOffers(f *Facts) []Finding {
	found := newFinding(Problem, "a device plugin and a driver of dynamic resource allocation give out GPUs of the same node: each may give a pod what the other has given another").
		WithRemedy("keep one of them off the node: by node selectors, or devicePlugin.enabled=false of the GPU Operator")
	published := map[string]string{}
	for _, s := range f.Slices {
		if s.Spec.Driver == "gpu.nvidia.com" && s.Spec.NodeName != nil && len(s.Spec.Devices) > 0 {
			published[*s.Spec.NodeName] = s.Name
		}
	}
	for _, n := range f.Nodes {
		slice := published[n.Name]
		if resource := pluginResource(n); slice != "" && resource != "" {
			amount := n.Status.Allocatable[resource]
			found = found.With(object("node", "", n.Name), "status.allocatable["+string(resource)+"]", amount.String()).
				With(object("resourceslice", "", slice), "spec.driver", "gpu.nvidia.com")
		}
	}
	return withEvidence(found)
}

// pluginResource is a resource under which a device plugin offers GPUs of the node; "": it offers none.
func pluginResource(n *corev1.Node) corev1.ResourceName {
	for _, name := range offered(n) {
		if name == string(sharedGPU) || name == string(wholeGPU) || strings.HasPrefix(name, migResources) {
			return corev1.ResourceName(name)
		}
	}
	return ""
}

// checkUnclaimableDevices explains why devices that claims share are no pools of strategy claim, if a policy allows it.
func checkUnclaimableDevices(f *Facts) []Finding {
	if len(f.Slices) == 0 || !slices.ContainsFunc(f.Governed(), func(g Governed) bool { return g.Input.Policy.Allows("claim") }) {
		return nil
	}
	found := newFinding(Note, "these devices are shared, and strategy claim does not use them: it counts memory, and nothing else").
		WithRemedy("have NVIDIA's driver share out memory (--consumable-shares=memory), or list another strategy for these nodes")
	for _, s := range f.Slices {
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			if why := unclaimable(s.Spec.Driver, d); why != "" && d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations {
				found = found.With(object("resourceslice", "", s.Name), "spec.devices["+d.Name+"].capacity", why)
			}
		}
	}
	return withEvidence(found)
}

// unclaimable is a part of a device that claims of memory cannot name, or take by default; "": none, or it is no GPU.
func unclaimable(driver string, d *resourcev1.Device) string {
	var whys []string
	memory := false
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		c := d.Capacity[name]
		switch short := strings.TrimPrefix(string(name), driver+"/"); short {
		case "memory":
			memory = true
			if taken := byDefault(c); taken.Cmp(c.Value) < 0 {
				whys = append(whys, fmt.Sprintf("who names no amount takes %s of %s memory", taken.String(), c.Value.String()))
			}
		case "shares":
		default:
			whys = append(whys, fmt.Sprintf("%s is counted too: a claim that does not name it takes %s", short, new(byDefault(c)).String()))
		}
	}
	if !memory {
		return ""
	}
	return strings.Join(whys, "; ")
}

// byDefault is a claim's part of a capacity that it does not name.
func byDefault(c resourcev1.DeviceCapacity) resource.Quantity {
	if c.RequestPolicy != nil && c.RequestPolicy.Default != nil {
		return *c.RequestPolicy.Default
	}
	return c.Value
}

// checkUncountedShares looks for GPUs that any number of claims share without a count of their memory.
func checkUncountedShares(f *Facts) []Finding {
	found := newFinding(Warning, "any number of pods may share these GPUs, and a claim that names no amount takes no memory of them").
		WithRemedy("have the driver share out memory (NVIDIA's: --consumable-shares=memory), or a number of shares")
	for _, s := range f.Slices {
		for i := range s.Spec.Devices {
			if d := &s.Spec.Devices[i]; takesNoMemory(d) {
				found = found.With(object("resourceslice", "", s.Name), "spec.devices["+d.Name+"].capacity[memory].requestPolicy.default", "0")
			}
		}
	}
	return withEvidence(found)
}

// takesNoMemory reports whether claims share the device's memory, and take none of it and nothing else by default.
func takesNoMemory(d *resourcev1.Device) bool {
	memory := false
	for name, c := range d.Capacity {
		if c.RequestPolicy == nil || c.RequestPolicy.Default == nil || !c.RequestPolicy.Default.IsZero() {
			return false
		}
		memory = memory || name == "memory"
	}
	return memory && d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
}
