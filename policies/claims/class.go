package claims

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// Attributes by which a class may choose.
const (
	attributeType    = "type"
	attributeProfile = "profile"
)

// ClassChooses reports whether a class is known to choose devices of a driver that have the type and the profile; nil does not.
func ClassChooses(class *resourcev1.DeviceClass, driver, kind, profile string) bool {
	if class == nil {
		return false
	}
	text := ClassExpressions(class)
	return Quotes(text, driver) && (kind == "" || !strings.Contains(text, ".type") || Quotes(text, kind)) &&
		!ChoosesByMore(text, driver, kind, profile)
}

// ClassExpressions are those by which a class chooses devices.
func ClassExpressions(class *resourcev1.DeviceClass) string {
	var all []string
	for _, s := range class.Spec.Selectors {
		if s.CEL != nil {
			all = append(all, s.CEL.Expression)
		}
	}
	return strings.Join(all, "\n")
}

// ChoosesByMore reports whether an expression has anything but the driver, type and profile of a device that it demands.
func ChoosesByMore(expression, driver, kind, profile string) bool {
	values := []string{driver, kind, profile, attributeType, attributeProfile}
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

// Quotes reports whether an expression has the text as a string.
func Quotes(expression, text string) bool {
	return strings.Contains(expression, "'"+text+"'") || strings.Contains(expression, `"`+text+`"`)
}
