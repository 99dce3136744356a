package pools

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

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
	text := expressions(s.Classes[names[0]])
	switch {
	case !quotes(text, driver):
		return "", fmt.Sprintf("DeviceClass %s has extendedResourceName %s, and its selectors do not name driver %s", names[0], resource, driver)
	case d.kind != "" && strings.Contains(text, ".type") && !quotes(text, d.kind), d.profile != "" && !quotes(text, d.profile):
		return "", fmt.Sprintf("DeviceClass %s has extendedResourceName %s, and whether its selectors choose devices of type %s is not known",
			names[0], resource, message.Quote(strings.TrimSpace(d.kind+" "+d.profile)))
	case choosesByMore(text, driver, d):
		return "", fmt.Sprintf("DeviceClass %s has extendedResourceName %s, and its selectors go by more than driver, type and profile: whether they choose the devices here is not known",
			names[0], resource)
	}
	return names[0], ""
}

// classClaimed is the device class by which claims get a device, whatever resource it stands for; "": there is none. Of several it
// is the one that is called like the driver, else the first.
func (s Source) classClaimed(driver string, d *device) (class string) {
	for name, c := range s.Classes {
		text := expressions(c)
		if !quotes(text, driver) || d.kind != "" && strings.Contains(text, ".type") && !quotes(text, d.kind) || choosesByMore(text, driver, d) {
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

// choosesByMore reports whether an expression has anything but the driver, type and profile of a device that it demands.
func choosesByMore(expression, driver string, d *device) bool {
	values := []string{driver, d.kind, d.profile, attributeType, attributeProfile}
	for expression != "" {
		bare, quote := expression, ""
		if at := strings.IndexAny(expression, `'"`); at >= 0 {
			bare, quote = expression[:at], expression[at:at+1]
		}
		if hasOtherWords(bare) {
			return true
		}
		if quote == "" {
			break
		}
		var value string
		if value, expression, _ = strings.Cut(expression[len(bare)+1:], quote); !slices.Contains(values, value) {
			return true
		}
	}
	return false
}

// hasOtherWords reports whether text between the strings of an expression does more than demand driver, type and profile.
func hasOtherWords(text string) bool {
	between := func(r rune) bool { return strings.ContainsRune(" \t\n().[]&=", r) }
	for word := range strings.FieldsFuncSeq(text, between) {
		switch word {
		case "device", "driver", "attributes", "has", "in", attributeType, attributeProfile:
		default:
			return true
		}
	}
	return false
}

// quotes reports whether an expression has the text as a string.
func quotes(expression, text string) bool {
	return strings.Contains(expression, "'"+text+"'") || strings.Contains(expression, `"`+text+`"`)
}
