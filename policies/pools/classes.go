package pools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// classOf is the device class by which pods get a device of a driver under a resource name, or why there is none. Expressions are
// not evaluated: a class has to name the driver, and the device's type and profile where it chooses by them, and nothing else.
func (s Source) classOf(driver, resource string, d *device) (class, why string) {
	names := s.classesNamed(resource)
	switch len(names) {
	case 0:
		return "", fmt.Sprintf("no DeviceClass has extendedResourceName %s, so no pod can request it by that name", resource)
	case 1:
	default: // Kubernetes takes the newest
		return "", fmt.Sprintf("DeviceClasses %s all have extendedResourceName %s: leave it to one", message.ShortList(names), resource)
	}
	text := claims.ClassExpressions(s.Classes[names[0]])
	switch {
	case !claims.Quotes(text, driver):
		return "", fmt.Sprintf("DeviceClass %s has extendedResourceName %s, and its selectors do not name driver %s", names[0], resource, driver)
	case d.kind != "" && strings.Contains(text, ".type") && !claims.Quotes(text, d.kind), d.profile != "" && !claims.Quotes(text, d.profile):
		return "", fmt.Sprintf("DeviceClass %s has extendedResourceName %s, and whether its selectors choose devices of type %s is not known",
			names[0], resource, message.Quote(strings.TrimSpace(d.kind+" "+d.profile)))
	case claims.ChoosesByMore(text, driver, d.kind, d.profile):
		return "", fmt.Sprintf("DeviceClass %s has extendedResourceName %s, and its selectors go by more than driver, type and profile: whether they choose the devices here is not known",
			names[0], resource)
	}
	return names[0], ""
}

// classClaimed is the device class by which claims get a device, whatever resource it stands for; "": there is none. Of several it
// is the one that is called like the driver, else the first.
func (s Source) classClaimed(driver string, d *device) (class string) {
	for name, c := range s.Classes {
		if !claims.ClassChooses(c, driver, d.kind, d.profile) {
			continue
		}
		if name == driver || class == "" || class != driver && name < class {
			class = name
		}
	}
	return class
}

// classesNamed are the classes with an extended resource name, sorted.
func (s Source) classesNamed(resource string) (names []string) {
	for name, class := range s.Classes {
		if e := class.Spec.ExtendedResourceName; e != nil && *e == resource {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
