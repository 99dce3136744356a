package frameworks

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What policy may do about an argument that takes more than the slice.
const (
	ArgumentsWarn    = "warn"
	ArgumentsRewrite = "rewrite"
	ArgumentsDeny    = "deny"
)

// Switch is what policy may say about one profile. Its zero value leaves the profile as it is.
type Switch struct {
	Enabled   *bool    `json:"enabled,omitempty"`   // default true
	Version   string   `json:"version,omitempty"`   // when neither label nor policy's framework says one
	Arguments string   `json:"arguments,omitempty"` // ArgumentsWarn (default), ArgumentsRewrite or ArgumentsRefuse
	AllocConf *string  `json:"allocConf,omitempty"` // in the place of the profile's settings text; "" turns it off
	Images    []string `json:"images,omitempty"`    // more image patterns
}

// argumentModes returns what policy may do about arguments, the laxest first.
func argumentModes() []string {
	return []string{ArgumentsWarn, ArgumentsRewrite, ArgumentsDeny}
}

// strictness orders what policy does about arguments: more is stricter.
func (s Switch) Strictness() int {
	return slices.Index(argumentModes(), cmp.Or(s.Arguments, ArgumentsWarn))
}

func (s Switch) Off() bool { return s.Enabled != nil && !*s.Enabled }

// names reports whether one of the policy's own patterns describes the image. Broken ones, which validation refuses, match nothing.
func (s Switch) names(image image) bool {
	return slices.ContainsFunc(s.Images, func(text string) bool {
		pattern, err := compilePattern(text)
		return err == nil && pattern.matches(image)
	})
}

// SwitchErrors validates what policy says about the profile called name, with every problem under path.
func SwitchErrors(path *field.Path, name string, s Switch) field.ErrorList {
	p := named(table, name)
	if p == nil {
		return field.ErrorList{field.NotSupported(path, name, Names())}
	}
	var errs field.ErrorList
	if _, ok := parseVersion(s.Version); s.Version != "" && !ok {
		errs = append(errs, field.Invalid(path.Child("version"), shorten(s.Version), "write a release number such as \"2.4\""))
	}
	if s.Arguments != "" && !slices.Contains(argumentModes(), s.Arguments) {
		errs = append(errs, field.NotSupported(path.Child("arguments"), shorten(s.Arguments), argumentModes()))
	}
	if s.AllocConf != nil {
		errs = append(errs, p.confErrors(path.Child("allocConf"), *s.AllocConf)...)
	}
	for i, text := range s.Images {
		if _, err := compilePattern(text); err != nil {
			errs = append(errs, field.Invalid(path.Child("images").Index(i), shorten(text), err.Error()))
		}
	}
	return errs
}
