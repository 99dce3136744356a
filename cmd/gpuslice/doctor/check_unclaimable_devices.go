package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

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
