package doctor

import resourcev1 "k8s.io/api/resource/v1"

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
