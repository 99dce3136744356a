package policies

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What policy may do about an argument that takes more than the slice.
const (
	ProfileArgumentsWarn    = "warn"
	ProfileArgumentsRewrite = "rewrite"
	ProfileArgumentsRefuse  = "refuse"
)

// ProfileSwitch is what policy may say about one profile. Its zero value leaves the profile as it is.
type ProfileSwitch struct {
	Enabled   *bool    `json:"enabled,omitempty"`   // default true
	Version   string   `json:"version,omitempty"`   // when neither label nor policy's framework says one
	Arguments string   `json:"arguments,omitempty"` // ProfileArgumentsWarn (default), ProfileArgumentsRewrite or ProfileArgumentsRefuse
	AllocConf *string  `json:"allocConf,omitempty"` // in the place of the profile's settings text; "" turns it off
	Images    []string `json:"images,omitempty"`    // more image patterns
}

// profileArgumentModes returns what policy may do about arguments, the laxest first.
func profileArgumentModes() []string {
	return []string{ProfileArgumentsWarn, ProfileArgumentsRewrite, ProfileArgumentsRefuse}
}

// strictness orders what policy does about arguments: more is stricter.
func (s ProfileSwitch) strictness() int {
	return slices.Index(profileArgumentModes(), cmp.Or(s.Arguments, ProfileArgumentsWarn))
}

func (s ProfileSwitch) off() bool { return s.Enabled != nil && !*s.Enabled }

// names says whether one of the policy's own patterns describes the image. Broken ones, which validation refuses, match nothing.
func (s ProfileSwitch) names(image profileImage) bool {
	return slices.ContainsFunc(s.Images, func(text string) bool {
		pattern, err := profileCompilePattern(text)
		return err == nil && pattern.matches(image)
	})
}

// ProfileSwitchErrors validates what policy says about the profile called name, with every problem under path.
func ProfileSwitchErrors(path *field.Path, name string, s ProfileSwitch) field.ErrorList {
	p := profileNamed(profileTable, name)
	if p == nil {
		return field.ErrorList{field.NotSupported(path, name, FrameworkNames())}
	}
	var errs field.ErrorList
	if _, ok := profileParseVersion(s.Version); s.Version != "" && !ok {
		errs = append(errs, field.Invalid(path.Child("version"), profileShorten(s.Version), "write a release number such as \"2.4\""))
	}
	if s.Arguments != "" && !slices.Contains(profileArgumentModes(), s.Arguments) {
		errs = append(errs, field.NotSupported(path.Child("arguments"), profileShorten(s.Arguments), profileArgumentModes()))
	}
	if s.AllocConf != nil {
		errs = append(errs, p.confErrors(path.Child("allocConf"), *s.AllocConf)...)
	}
	for i, text := range s.Images {
		if _, err := profileCompilePattern(text); err != nil {
			errs = append(errs, field.Invalid(path.Child("images").Index(i), profileShorten(text), err.Error()))
		}
	}
	return errs
}
