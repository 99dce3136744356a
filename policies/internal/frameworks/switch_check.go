package frameworks

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/internal/shim"
)

// SwitchErrors validates policy's settings of the profile called name, with every problem under path.
func SwitchErrors(path *field.Path, name string, s Switch) field.ErrorList {
	p := named(table, name)
	if p == nil {
		return field.ErrorList{field.NotSupported(path, name, Names())}
	}
	var errs field.ErrorList
	if _, ok := parseVersion(s.Version); s.Version != "" && !ok {
		errs = append(errs, field.Invalid(path.Child("version"), shorten.Text(s.Version, maxQuoted), "write a release number such as \"2.4\""))
	}
	if s.Arguments != "" && !slices.Contains(argumentModes(), s.Arguments) {
		errs = append(errs, field.NotSupported(path.Child("arguments"), shorten.Text(s.Arguments, maxQuoted), argumentModes()))
	}
	if modes := shim.Modes(); s.Shim != "" && !slices.Contains(modes, s.Shim) {
		errs = append(errs, field.NotSupported(path.Child("shim"), shorten.Text(s.Shim, maxQuoted), modes))
	} else if s.Shim != "" && p.Shim == nil {
		errs = append(errs, field.Forbidden(path.Child("shim"), p.Title+" has no shim"))
	}
	if s.AllocConf != nil {
		errs = append(errs, p.confErrors(path.Child("allocConf"), *s.AllocConf)...)
	}
	return append(errs, PatternErrors(path.Child("images"), s.Images)...)
}

// PatternErrors validates image patterns, with every problem under path.
func PatternErrors(path *field.Path, patterns []string) (errs field.ErrorList) {
	for i, text := range patterns {
		if _, err := compilePattern(text); err != nil {
			errs = append(errs, field.Invalid(path.Index(i), shorten.Text(text, maxQuoted), err.Error()))
		}
	}
	return errs
}
