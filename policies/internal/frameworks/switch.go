package frameworks

import (
	"cmp"
	"slices"

	"github.com/gpuslice/gpuslice/policies/internal/shim"
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
	Arguments string   `json:"arguments,omitempty"` // what becomes of arguments that do not hold the slice; default warn
	Shim      string   `json:"shim,omitempty"`      // whether the shim caps releases that read no limit from their environment: "off"; "variable" (default: where the pod's env has a literal PYTHONPATH); "on" (also by the container's command); "env-files" (also containers whose image alone says what runs; the cluster has the feature EnvFiles)
	AllocConf *string  `json:"allocConf,omitempty"` // in the place of the profile's settings text; "" turns it off
	Images    []string `json:"images,omitempty"`    // more image patterns
}

// argumentModes returns what policy may do about arguments, the laxest first.
func argumentModes() []string {
	return []string{ArgumentsWarn, ArgumentsRewrite, ArgumentsDeny}
}

// Strictness orders what policy does about arguments: more is stricter.
func (s Switch) Strictness() int {
	return slices.Index(argumentModes(), cmp.Or(s.Arguments, ArgumentsWarn))
}

// ShimMode returns what policy says of the shim.
func (s Switch) ShimMode() string { return cmp.Or(s.Shim, shim.Variable) }

func (s Switch) Off() bool { return s.Enabled != nil && !*s.Enabled }

// names reports whether one of the policy's own patterns describes the image. Broken ones, which validation denies, match nothing.
func (s Switch) names(image image) bool {
	return slices.ContainsFunc(s.Images, func(text string) bool {
		pattern, err := compilePattern(text)
		return err == nil && pattern.matches(image)
	})
}
