package frameworks

import (
	"cmp"
	"slices"

	"github.com/gpuslice/gpuslice/policies/internal/shim"
)

// Policy's choices for an argument that takes more than the slice.
const (
	ArgumentsWarn    = "warn"
	ArgumentsRewrite = "rewrite"
	ArgumentsDeny    = "deny"
)

// Switch is a policy's settings of one profile. Its zero value leaves the profile as it is.
type Switch struct {
	Enabled *bool  `json:"enabled,omitempty"` // default true
	Version string `json:"version,omitempty"` // if neither label nor policy's framework has one
	// handling of arguments that exceed the slice: warn (default); deny; or rewrite, which appends the flag for the slice, and denies
	// arguments that cannot be seen, such as in a script. Only a flag that the server itself gets is a cap: words behind the script of
	// `sh -c` are none, unless it passes them on (`"$@"`), nor is a flag before a variable of the image, which may be another flag
	Arguments string `json:"arguments,omitempty"`
	// whether the shim caps releases that read no limit from their environment: "off"; "variable" (default: where the pod's env has a literal
	// PYTHONPATH); "on" (also by the container's command); "env-files" (also containers whose program only the image names;
	// the cluster has the feature EnvFiles). See policies/README.md#pytorch-before-210
	Shim      string   `json:"shim,omitempty"`
	AllocConf *string  `json:"allocConf,omitempty"` // in the place of the profile's settings text; "" turns it off
	Images    []string `json:"images,omitempty"`    // more image patterns
}

// argumentModes returns policy's choices for arguments, the laxest first.
func argumentModes() []string {
	return []string{ArgumentsWarn, ArgumentsRewrite, ArgumentsDeny}
}

// Strictness orders policies on arguments: more is stricter.
func (s Switch) Strictness() int {
	return slices.Index(argumentModes(), cmp.Or(s.Arguments, ArgumentsWarn))
}

// ShimMode returns the policy on the shim.
func (s Switch) ShimMode() string { return cmp.Or(s.Shim, shim.Variable) }

func (s Switch) Off() bool { return s.Enabled != nil && !*s.Enabled }

// names reports whether one of the policy's own patterns describes the image. Broken ones, which validation denies, match nothing.
func (s Switch) names(image image) bool {
	return slices.ContainsFunc(s.Images, func(text string) bool {
		p, err := compilePattern(text)
		return err == nil && anyMatches([]pattern{p}, image)
	})
}
