package frameworks

import "strings"

// Where the version of a framework was read.
const (
	VersionFromLabel  = "label"
	VersionFromPolicy = "policy"
	VersionFromImage  = "image tag"
)

// Env is one variable to set. Value is ready for a pod: "$" is doubled, so that the kubelet expands nothing.
type Env struct {
	Name, Value string
	Cap         bool // the variable holds the framework at or below the limit
}

// Denial is a pod that must not run as it is. Reason is stable; Detail names the request, the available choices and the
// remedy.
type Denial struct {
	Reason, Detail string
}

// Reasons of a Denial.
const (
	DeniedFramework = "UnknownFramework"
	DeniedArgument  = "FrameworkArgument"
	DeniedConflict  = "FrameworkConflict"
)

// Result is a profile's effect on one container. Its order is a function of the input alone.
type Result struct {
	Framework     string   // name of the profile; "" when none applies
	Version       string   // as far as it is known; "" when not
	VersionSource string   // one of the VersionFrom constants; "" without a version
	Env           []Env    // never a variable that the user set, or may have set by envFrom where that matters
	Shim          string   // of package shim: how the container loads the shim; "" where it does not
	Args          []string // to add at the end of the container's arguments
	Capped        bool     // a framework cap at or below the limit is in force
	Cap           string   // which one, for people; "" unless Capped
	NotCapped     string   // why not, for people; "" when Capped
	Notes         []string // settings left as the user wrote them
	Warnings      []string // problems that the user should act on
	Denials       []Denial // empty unless the pod must be denied
}

// Text names the framework with its version and where that was read; "" without one.
func (r *Result) Text() string {
	text := strings.TrimSpace(r.Framework + " " + r.Version)
	if text != "" && r.VersionSource != "" {
		text += " (" + r.VersionSource + ")"
	}
	return text
}
