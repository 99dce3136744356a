package pools

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// classOf is the device class by which pods get a device of a driver under a resource name, or why there is none. Expressions are
// not evaluated: a class has to name the driver, and the device's type and profile where it chooses by them.
func (s Source) classOf(driver, resource string, d *device) (class, why string) {
	names := s.classesNamed(resource)
	switch len(names) {
	case 0:
		return "", fmt.Sprintf("no DeviceClass has extendedResourceName %s, so no pod can request it by that name", resource)
	case 1:
	default: // Kubernetes takes the newest
		return "", fmt.Sprintf("DeviceClasses %s all have extendedResourceName %s: leave it to one", message.ShortList(names), resource)
	}
	text := expressions(s.Classes[names[0]])
	switch {
	case !quotes(text, driver):
		return "", fmt.Sprintf("DeviceClass %s has extendedResourceName %s, and its selectors do not name driver %s", names[0], resource, driver)
	case d.kind != "" && strings.Contains(text, ".type") && !quotes(text, d.kind), d.profile != "" && !quotes(text, d.profile):
		return "", fmt.Sprintf("DeviceClass %s has extendedResourceName %s, and whether its selectors choose devices of type %s is not known",
			names[0], resource, message.Quote(strings.TrimSpace(d.kind+" "+d.profile)))
	}
	return names[0], ""
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

// expressions are those by which a class chooses devices.
func expressions(class *resourcev1.DeviceClass) string {
	var all []string
	for _, s := range class.Spec.Selectors {
		if s.CEL != nil {
			all = append(all, s.CEL.Expression)
		}
	}
	return strings.Join(all, "\n")
}

// quotes reports whether an expression has the text as a string.
func quotes(expression, text string) bool {
	return strings.Contains(expression, "'"+text+"'") || strings.Contains(expression, `"`+text+`"`)
}
