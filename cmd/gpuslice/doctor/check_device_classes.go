package doctor

import (
	"maps"
	"slices"
	"strings"
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
		found := newFinding(Warning,
			"several device classes have the extended resource name %s: pods get devices of the newest, and gpuslice plans nothing there", name).
			WithRemedy("leave spec.extendedResourceName: %s to one of %s, and then write that one once more, as by kubectl label deviceclass NAME gpus=served: "+
				"until then Kubernetes may serve the name by none (kubernetes#141103)", name, strings.Join(classes[name], ", "))
		for _, class := range classes[name] {
			found = found.With(object("deviceclass", "", class), "spec.extendedResourceName", name)
		}
		all = append(all, found)
	}
	return all
}
